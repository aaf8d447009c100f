import { bind } from './bind.ts'
import { cifs } from './cifs.ts'
import { disks } from './disk.ts'
import { findFuseKind } from './fuse.ts'
import type { VolumeKind } from './kind/kind.ts'
import { nfs, nfs4 } from './nfs.ts'
import { tmpfs } from './tmpfs.ts'

/** A new kind needs one file and one line here. */
const KINDS: ReadonlyMap<string, VolumeKind> = new Map(
  [bind, tmpfs, ...disks, nfs, nfs4, cifs].map((kind) => [kind.name, kind]),
)

export function findKind(fsType: string): VolumeKind | undefined {
  return KINDS.get(fsType) ?? findFuseKind(fsType)
}

export const kinds = { find: findKind, names: [...KINDS.keys(), 'fuse.<program>'] }
