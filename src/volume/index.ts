import { bindKind } from './bind.ts'
import { cifsKind } from './cifs.ts'
import { diskKinds } from './disk.ts'
import { findFuseKind } from './fuse.ts'
import type { VolumeKind } from './kind/kind.ts'
import { nfs4Kind, nfsKind } from './nfs.ts'
import { tmpfsKind } from './tmpfs.ts'

/** A new kind needs one file and one line here. */
const VOLUME_KINDS: ReadonlyMap<string, VolumeKind> = new Map(
  [bindKind, tmpfsKind, ...diskKinds, nfsKind, nfs4Kind, cifsKind].map((kind) => [kind.name, kind]),
)

export function findVolumeKind(fsType: string): VolumeKind | undefined {
  return VOLUME_KINDS.get(fsType) ?? findFuseKind(fsType)
}

export const volumeKindLookup = { find: findVolumeKind, names: [...VOLUME_KINDS.keys(), 'fuse.<program>'] }
