import type { MountRecord } from '../state/mount-record.ts'

/** The topmost mount at the mount directory and the root inode it shows. */
export interface MountedView {
  mountId: bigint
  device: number
  inode: bigint
  isDirectory: boolean
}

/** What there is to mount on: kubelet makes a directory, and a volume that is none needs a file. */
export type Target = 'directory' | 'file' | 'missing'

/** What the request's source, or its subPath in it, is now. */
export interface SourceView {
  /** The inode that a mount of it shows; undefined where only the mount knows. */
  root: { device: number; inode: bigint; group: number } | undefined
  /** Tells a source from another of the same name, where `root` does not; '' where nothing can. */
  identity: string
  /** Undefined where only the mount knows. */
  volume: string | undefined
  /** Its real path, or its text as it was written. */
  path: string
  isDirectory: boolean
}

/** All that a plan is made from: what was observed, at one moment, under the lock. */
export interface View {
  /** The topmost mount, or undefined; 'broken' where even asking fails (a dead FUSE daemon, a stale NFS handle). */
  mounted: MountedView | 'broken' | undefined
  /** Where nothing is mounted; below a mount it is of the mounted root's type. */
  target: Target
  record: MountRecord | undefined
  /** Beneath a daemon's mount lies what keeps pods from writing to the node's disk; true where none is needed. */
  isGuarded: boolean
  /** Undefined for kinds that have none. */
  source: SourceView | undefined
  boot: string
  /** The group a walk has given, or begun to give, the volume that the record speaks of; undefined: none is known of. */
  walked: { group: number; complete: boolean } | undefined
}
