import { bind } from './bind.ts'
import { blocks } from './disk/block.ts'
import { fuse } from './fuse/fuse.ts'
import type { VolumeKind } from './kind/kind.ts'
import { cifs } from './remote/cifs.ts'
import { nfs, nfs4 } from './remote/nfs.ts'
import { tmpfs } from './tmpfs.ts'

/** A new kind is one file and its line here. */
const KINDS: ReadonlyMap<string, VolumeKind> = new Map(
  [bind, tmpfs, ...blocks, nfs, nfs4, cifs].map((kind) => [kind.name, kind]),
)

/** The kind that mounts a fsType, if there is one. */
export function kindOf(fsType: string): VolumeKind | undefined {
  return KINDS.get(fsType) ?? fuse(fsType)
}

/** What there is to choose from, for messages. */
export const KIND_NAMES: readonly string[] = [...KINDS.keys(), 'fuse.<program>']

export const kinds = { of: kindOf, names: KIND_NAMES }
