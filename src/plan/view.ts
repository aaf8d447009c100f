import type { MountRecord } from '../state/mount-record.ts'

/** The topmost mount at the mount directory and the root inode it shows. */
export interface MountedView {
  mountId: bigint
  device: number
  inode: bigint
}

/** All that a plan is made from: what was observed, at one moment, under the lock. */
export interface View {
  /** The topmost mount, or undefined; 'broken' where even asking fails (a dead FUSE daemon, a stale NFS handle). */
  mounted: MountedView | 'broken' | undefined
  record: MountRecord | undefined
  /** What the request's source is now; undefined for kinds that have none. */
  source: { device: number; inode: bigint; volume: string } | undefined
  boot: string
  /** The group a walk has given, or begun to give, the volume that the record speaks of; undefined: none is known of. */
  walked: { group: number; complete: boolean } | undefined
}
