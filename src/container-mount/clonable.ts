import type { Handle } from '../host/host.ts'

/** What a clone is made of: a detached mount that no path leads to yet, which shows all as it is. */
export interface Clonable {
  /** The real path of what it shows. */
  path: string
  /** The volume's identity, or that of the part. */
  identity: string | undefined
  /** The group on disk, and the one that is to be seen in its place; undefined: none. */
  from: number
  to: number | undefined
  /** `from`, looked at again. */
  groupNow(): number
  /** The root of the volume, where what is shown may be a part of it; undefined: modekeep's own volume. */
  root?: { handle: Handle; path: string } | undefined
  /** Closed with what it was opened for. */
  tree: Handle
  /** What it is a clone of, for messages; undefined: it is a new mount of this type. */
  clonedFrom: Handle | undefined
  fsType?: string | undefined
}
