import type { DatabaseSync } from 'node:sqlite'
import type { Handle, Name } from './handle.ts'
import type { Helpers } from './helpers.ts'
import type { TrustedFiles } from './trusted-files.ts'

export { closing, type Handle, type Name, orClosed } from './handle.ts'
export { errorCode, explained, SystemError, unless } from './system-error.ts'

export const FILE_TYPE = 0o170000
export const DIRECTORY = 0o040000
export const REGULAR = 0o100000
export const SYMLINK = 0o120000
export const BLOCK_DEVICE = 0o060000
export const CHARACTER_DEVICE = 0o020000
export const FIFO = 0o010000
export const SOCKET = 0o140000

/**
 * statx(2) of one inode. `mode` has the type bits; times are nanoseconds, but `changed` milliseconds with their
 * fraction; `born` is 0 where the file system has none.
 */
export interface Stat {
  device: number
  inode: bigint
  born: bigint
  changed: number
  modified: bigint
  size: bigint
  mode: number
  uid: number
  gid: number
  links: number
  /** Counted up from the boot on, and never reused within it since Linux 6.8 (STATX_MNT_ID_UNIQUE). */
  mountId: number
  mountRoot: boolean
  /** Immutable or append-only (chattr(1)), as far as the file system tells. */
  immutable: boolean
}

export function isDirectory({ mode }: Pick<Stat, 'mode'>): boolean {
  return (mode & FILE_TYPE) === DIRECTORY
}

/** Everything that is done to inodes. All is relative to handles; nothing follows a link, unless it says so. */
export interface Inodes {
  /** @throws {SystemError} ELOOP where any part of the absolute path is a link */
  openLinkFree(path: string): Handle
  /**
   * What a relative path leads to without ever leaving `root`. Links are followed inside, mounts are crossed.
   * @throws {SystemError} EXDEV where it leads out, also by an absolute link; EAGAIN where the kernel cannot tell, as
   * something was renamed meanwhile; ELOOP for too many links or a magic one; ENOENT; ENOTDIR; ENOSYS before Linux 5.6
   */
  openBeneath(root: Handle, path: string): Handle
  /**
   * The target of the link a handle holds, for who follows it by hand.
   * @throws {SystemError} ELOOP where the kernel would not follow it, or might not go by its text: a mount with
   * nosymfollow, a link in /proc
   */
  readLink(handle: Handle): Uint8Array
  /** A directory the caller trusts: links are followed. */
  openTrusted(path: string): Handle
  openDirectory(parent: Handle, name: Name): Handle
  openEntry(parent: Handle, name: Name): Handle
  close(handle: Handle): void
  /** Where the handle's inode is now, for messages and for keys: never opened again. */
  pathOf(handle: Handle): string
  stat(handle: Handle): Stat
  /** Of `stat`, what a walk asks once more before it changes an inode. */
  ownership(handle: Handle): Pick<Stat, 'gid' | 'mode' | 'changed'>
  statEntry(parent: Handle, name: Name): Stat
  /** Asks its server or daemon, whatever is cached: the attributes are, for seconds after a daemon's death. */
  askEntry(parent: Handle, name: Name): Stat
  /** Never asks a server or a daemon: enough to tell what is mounted. Without a name, of the handle itself. */
  statMountPoint(parent: Handle, name?: Name): Stat
  /** A new, empty file; EEXIST where the name is taken. */
  createFile(parent: Handle, name: Name, mode: number): void
  createDirectory(parent: Handle, name: Name, mode: number): void
  removeFile(parent: Handle, name: Name): void
  /** An empty one. */
  removeDirectory(parent: Handle, name: Name): void
  /** A block of entries as getdents64(2) gives them, to be read with dirents.ts; empty at the end. */
  readEntries(directory: Handle): Uint8Array
  seekEntries(directory: Handle, next: bigint): void
  /** chown(2) of the group alone. */
  chown(handle: Handle, gid: number): void
  chmod(handle: Handle, mode: number): void
  /** How many handles the process may have open. */
  handleLimit(): number
  /** The same inode held a second time, for another thread. */
  duplicate(handle: Handle): Handle
  /** Undefined where no more handles may be open. */
  tryDuplicate(handle: Handle): Handle | undefined
  getAttribute(handle: Handle, name: string): Uint8Array | undefined
  /**
   * NUL-separated names of the extended attributes of the inode a handle holds, '' where it has none, as most.
   * It was found as `name` in `parent`, which is quicker to ask; whoever exchanges the name meanwhile can hide an
   * attribute of an inode he could as well remove. Values are only ever read through the handle.
   */
  attributeNames(handle: Handle, parent: Handle, name: Name): string
  setAttribute(handle: Handle, name: string, value: Uint8Array): void
  removeAttribute(handle: Handle, name: string): void
  /** Identifies the file system across reboots: its UUID where the kernel tells it, else statfs' f_fsid. */
  fileSystemId(handle: Handle): string
}

/** Mount attributes as mount_setattr(2) takes them: MOUNT_ATTR_ bits to set and to clear. */
export interface MountFlags {
  set: number
  clear: number
}

/** Mounts are made detached, finished, and attached last. */
export interface Mounts {
  /** A detached mount of the directory alone, without what is mounted below it. */
  cloneTree(source: Handle): Handle
  /**
   * A detached mount of a new file system, or of the one on a block device held open. One that is mounted already is
   * shared, with the options it was mounted with first.
   * @param options fsconfig(2) strings `key=value` or flags; `ro` makes the file system itself read-only
   * @throws {SystemError} of `fsopen` ENODEV if the kernel lacks the file system; of `fsmount` EBUSY where the device
   *   is mounted with another `ro`, or otherwise in use; EACCES where the device is read-only; EINVAL where the device
   *   has no such file system
   */
  createTree(fsType: string, options: readonly string[], device?: Handle): Handle
  /** Also makes the mount private: what a pod mounts inside must not spread to the source. */
  setFlags(tree: Handle, flags: MountFlags): void
  /**
   * Through the tree, each of two different groups shows as the other and is written as the other (an idmapped mount,
   * Linux 5.12). Nothing changes on disk. Once per tree, before it is attached.
   * @throws {SystemError} of `clone`, `uid_map` or `gid_map` where no user namespace can be made for it; of
   *   `mount_setattr` EINVAL where the file system cannot, EPERM where the tree is idmapped already
   */
  swapGroups(tree: Handle, one: number, other: number): void
  attach(tree: Handle, target: Handle): void
  /** Under the mount whose root `target` is (MOVE_MOUNT_BENEATH, Linux 6.5). False: this kernel cannot. */
  attachBeneath(tree: Handle, target: Handle): boolean
  /**
   * Removes the topmost mount at parent/name; users that have it open keep their view. EINVAL: none is there.
   * @param abort ends the connection to a FUSE daemon first: whoever waits for an answer of it gets an error
   */
  detach(parent: Handle, name: Name, abort?: boolean): void
  /** The id that the mount of a handle has in `table()`, which has no detached mounts. The kernel reuses ids. */
  tableId(handle: Handle): number
  /** The text of /proc/self/mountinfo: only for what statx cannot tell, as its length grows with the node's mounts. */
  table(): string
}

/** A loop device that shows a file. */
export interface LoopDevice {
  /** Open; closed like any handle. */
  device: Handle
  isReadOnly: boolean
  /** Not a part of the file only. */
  isWhole: boolean
}

export interface BlockDevices {
  /** Opens a device by its node; it stays the same disk's as long as it is open. */
  open(node: Handle): Handle
  isReadOnly(device: Handle): boolean
  /** `/dev/sdb`, for messages and for the mount table. */
  nameOf(device: Handle): string
  /** Whether a row of the mount table is of this device, by whatever name. */
  isShownBy(device: Handle, row: { device: string; fsType: string; source: string }): boolean
  /** Up to `length` bytes from the start. */
  start(device: Handle, length: number): Uint8Array
  /** The loop device that shows the file already: two at once would both write to it, each with a cache of its own. */
  loopOf(image: Handle): LoopDevice | undefined
  /**
   * Makes a file a loop device, which goes when its last mount and the last handle of it are gone, however that comes.
   * @throws {SystemError} EBUSY where others take each free device first; ENOENT of `/dev/loop-control`
   */
  attachLoop(image: Handle, readOnly: boolean): Handle
}

/** A process that serves a mount. */
export interface Daemon {
  pid: number
  /** As /proc/PID/stat has it: R, S, D, T (stopped), … */
  state: string
}

/** The processes that serve mounts; they are children of nobody that still runs. */
export interface Daemons {
  /** The one that has this among its arguments: a path that no other process was ever given. */
  find(argument: string): Daemon | undefined
  /** Whether what is mounted at parent/name says anything in time, be it an error; true where it cannot be asked. */
  answers(parent: Handle, name: Name, milliseconds: number): Promise<boolean>
  /** All that were given a path below this directory: also the programs that a daemon has started. */
  below(directory: string): number[]
  /** SIGKILL to them. */
  kill(directory: string): void
}

export interface Lock extends Disposable {
  /** Once: later calls do nothing. @param discard also removes the lock's file: if that fails it is given back too */
  release(discard?: boolean): void
}

export interface Host {
  inodes: Inodes
  mounts: Mounts
  blocks: BlockDevices
  files: TrustedFiles
  helpers: Helpers
  daemons: Daemons
  /** Undefined while somebody else has it. The kernel releases a lock when its holder dies. */
  tryLock(path: string): Lock | undefined
  /** Whether somebody has the lock. Those who ask do not take one another for its holder. */
  isLocked(path: string): boolean
  /** Its integers are bigint. */
  openDatabase(path: string): DatabaseSync
  /** Changes with every boot; records of mounts from another boot are void. */
  bootId(): string
  /** Names the mount namespace of this process: mounts of another have other ids, or are not seen. */
  mountNamespace(): string
}
