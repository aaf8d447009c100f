import type { Handle, Name } from './handle.ts'

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

/** What statx(2) has just said, read where the kernel wrote it: true until this thread's next look. */
export interface StatView extends Stat {
  keep(): Stat
}

/** As mountinfo has it. @param device of a `Stat` */
export function formatDeviceId(device: number): string {
  return `${Math.floor(device / 2 ** 20)}:${device % 2 ** 20}`
}

/** Devices of servers, daemons and memory, and those of btrfs, have no major number. */
export function hasDisk(device: number): boolean {
  return device >= 2 ** 20
}

export function isDirectory({ mode }: Pick<Stat, 'mode'>): boolean {
  return (mode & FILE_TYPE) === DIRECTORY
}

/**
 * Entries of a directory that are looked at together: a call is cheap for the kernel, the way there is not. What is
 * undefined has failed: asked for alone, it says why. All is true until entries are looked at once more.
 */
export interface StatBatch {
  /** How many there may be. */
  readonly size: number
  /** The name of each in turn, of at most 255 bytes: `length` of a block of entries from `start` on. */
  setName(at: number, block: Uint8Array, start: number, length: number): void
  nameOf(at: number): Name
  /** As `lookEntry` of the first so many. @param isAhead by another thread, while this one goes on */
  look(parent: Handle, count: number, isAhead: boolean): void
  /** As `openEntry` of each, `look` and `attributeNames`. The handles are the caller's to close. */
  hold(parent: Handle, count: number, isAhead: boolean): void
  /** Returns when all that was begun has been seen: nothing may be asked before. `parent` must be open until then. */
  finish(): void
  stat(at: number): StatView | undefined
  handle(at: number): Handle | undefined
  attributeNames(at: number): string | undefined
}

/** What a file system has and what is left of it, of bytes or of inodes. */
export interface SpaceUsage {
  total: bigint
  used: bigint
  /** For users: root may have more. */
  available: bigint
}

/** A file without set-id bits, capability and ACL that is to get its group and its permission bits. */
export interface FileChange {
  handle: Handle
  /** What it must still be: its mode with type bits. */
  seenGroup: number
  seenMode: number
  /** ctime as seen, milliseconds, and whether it must be the same too. */
  changed: number
  needsSameTime: boolean
  group: number
  /** Permission bits. */
  mode: number
}

/** Changes of files that other threads make while this one goes on. */
export interface FileChangeBatch extends Disposable {
  /** The object is read, not kept. */
  set(at: number, change: FileChange): void
  /** The first so many are to be made. Their handles must be open until `finish` has returned. */
  start(count: number): void
  /** Returns when they are made. @returns how many were not */
  finish(): number
  /**
   * `made`: and its handle is closed; `odd`: it is not what it was, or could not be changed, and nothing was; `half`: it
   * lacks its permission bits.
   */
  outcome(at: number): 'made' | 'odd' | 'half'
}

/** Everything that is done to inodes. All is relative to handles; nothing follows a link, unless it says so. */
export interface Inodes {
  /** @throws {SystemError} ELOOP where any part of the absolute path is a link */
  openLinkFree(path: string): Handle
  /**
   * The type of the file system that an absolute path leads to, as far as the kernel knows without asking anybody:
   * undefined where some server or daemon may have to be asked, or the kernel is older than Linux 6.8.
   */
  knownType(path: string): string | undefined
  /**
   * Whether the kernel resolves an absolute path, links included, from its cache: such a lookup waits for no server, daemon,
   * disk or locked directory.
   */
  isCached(path: string): boolean
  /** Opens as the functions of the same names do. @throws {SystemError} EAGAIN where the cache does not tell */
  cachedOpens: Partial<Pick<Inodes, 'openLinkFree' | 'openBeneath' | 'openEntry'>>
  /** The same of a mount, by the id that `stat` tells. */
  typeOfMount(mountId: number): string | undefined
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
  closeAll(handles: readonly Handle[]): void
  /** Where the handle's inode is now, for messages and for keys: never opened again. */
  pathOf(handle: Handle): string
  stat(handle: Handle): Stat
  /** As `stat` and `statEntry`, for a walk, which keeps nothing of most inodes. */
  look(handle: Handle): StatView
  lookEntry(parent: Handle, name: Name): StatView
  /** Two, so that the one is looked at while the other is dealt with; none is in use between two steps of a walk. */
  sights(): readonly [StatBatch, StatBatch]
  /** Room for so many; undefined where no other thread can be had: whoever asks makes them. */
  changes(size: number): FileChangeBatch | undefined
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
  /**
   * Makes every change of the file system that a handle is on durable: returns once its disk has them.
   * @throws {SystemError} where the disk could not write a change
   */
  syncFileSystem(handle: Handle): void
  /**
   * Names the file system across reboots and devices by its UUID, which the kernel reports or its superblock has. Without
   * one, the name is statfs' f_fsid.
   */
  fileSystemId(handle: Handle): string
  /** The name by f_fsid, under which kernels and versions that read no UUID recorded it. Undefined where f_fsid is 0. */
  formerFileSystemId(handle: Handle): string | undefined
  /** Whether nothing can be written through a handle: its mount or its file system is read-only. Asks as `space` does. */
  isReadOnly(handle: Handle): boolean
  /** statfs(2) of the file system that a handle is on: its server or daemon is asked. */
  space(handle: Handle): { bytes: SpaceUsage; inodes: SpaceUsage }
}
