import type { MountedView, Target } from '../mount-table/mount-point.ts'
import type { MountRecord } from '../store/mount-record.ts'
import type { SourceView } from '../volume/source-view.ts'

/** All that a plan is made from: what was observed, at one moment, under the lock. */
export interface View {
  /** The topmost mount, or undefined; 'broken' where even asking fails (a dead FUSE daemon, a stale NFS handle). */
  mounted: MountedView | 'broken' | undefined
  /** Where nothing is mounted; below a mount it is of the mounted root's type. */
  target: Target
  record: MountRecord | undefined
  /** A daemon serves what is mounted, and nothing beneath keeps pods from writing to the node's disk. */
  needsGuard: boolean
  /** Undefined for kinds that have none. */
  source: SourceView | undefined
  boot: string
  /** Why the health of what is mounted is unknown. */
  doubt?: string | undefined
  /** The group a walk has given, or begun to give, the volume that the record speaks of; undefined: none is known of. */
  walked: { group: number; complete: boolean } | undefined
}
