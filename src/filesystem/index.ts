import { bind } from './bind.ts'
import type { VolumeKind } from './kind.ts'
import { tmpfs } from './tmpfs.ts'

/** The kinds of volume by fsType: a new kind is one file and its line here. */
export const kinds: ReadonlyMap<string, VolumeKind> = new Map([bind, tmpfs].map((kind) => [kind.name, kind]))
