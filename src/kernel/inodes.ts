declare const brand: unique symbol

/** An open inode or detached mount. Only a Host opens and closes handles. modekeep never reopens one by name. */
export type Handle = number & { readonly [brand]: 'handle' }

/** One path component in the kernel's bytes: no slash, no NUL, any encoding. */
export type EntryName = Uint8Array

/** Closes a handle at the end of the block, also after an error: `using _ = deferHandleClose(inodes, handle)`. */
export function deferHandleClose(inodes: { close(handle: Handle): void }, handle: Handle | undefined): Disposable {
  return { [Symbol.dispose]: () => handle !== undefined && inodes.close(handle) }
}

/** Passes a handle to `use`, whose result takes over the handle. Closes the handle if `use` throws. */
export function useHandleOrClose<T>(
  inodes: { close(handle: Handle): void },
  handle: Handle,
  use: (handle: Handle) => T,
): T {
  try {
    return use(handle)
  } catch (error) {
    inodes.close(handle)
    throw error
  }
}

export const FILE_TYPE_MASK = 0o170000
export const DIRECTORY_TYPE = 0o040000
export const REGULAR_FILE_TYPE = 0o100000
export const SYMLINK_TYPE = 0o120000
export const BLOCK_DEVICE_TYPE = 0o060000
export const CHARACTER_DEVICE_TYPE = 0o020000
export const FIFO_TYPE = 0o010000
export const SOCKET_TYPE = 0o140000

/**
 * Result of statx(2). `mode` includes the type bits. Times are nanoseconds, except `changed`, which is fractional
 * milliseconds. `born` is 0 if the file system stores no birth time.
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
  /** Counted up from the boot on. Since Linux 6.8 never reused within a boot (STATX_MNT_ID_UNIQUE). */
  mountId: number
  mountRoot: boolean
  /** Immutable or append-only (chattr(1)), as reported by the file system. */
  immutable: boolean
}

/** View of the last statx(2) result in the kernel's buffer. It is valid until this thread's next call of statx. */
export interface StatView extends Stat {
  keep(): Stat
}

/** Formats a device number as in mountinfo. @param device of a `Stat` */
export function formatDeviceId(device: number): string {
  return `${Math.floor(device / 2 ** 20)}:${device % 2 ** 20}`
}

/** False for servers, daemons, memory and btrfs: their device numbers have no major number. */
export function isDiskDevice(device: number): boolean {
  return device >= 2 ** 20
}

export function isDirectory({ mode }: Pick<Stat, 'mode'>): boolean {
  return (mode & FILE_TYPE_MASK) === DIRECTORY_TYPE
}

/**
 * Stats several entries of a directory in one call into the addon, because the call costs more than the kernel's work.
 * An undefined result means failure: a single call of the same kind reports the error. Results are valid until the next
 * batch.
 */
export interface StatBatch {
  /** Maximum number of entries. */
  readonly size: number
  /** Sets the name of one entry, of at most 255 bytes, from `length` bytes of an entry block at `start`. */
  setName(at: number, block: Uint8Array, start: number, length: number): void
  nameOf(at: number): EntryName
  /** Calls `viewEntry` for the first `count` entries. @param isAhead in another thread, while this one continues */
  look(parent: Handle, count: number, isAhead: boolean): void
  /** Calls `openEntry`, `look` and `attributeNames` for each entry. The caller closes the handles. */
  hold(parent: Handle, count: number, isAhead: boolean): void
  /** Waits for the batch. Results may not be read before, and `parent` must be open until then. */
  finish(): void
  stat(at: number): StatView | undefined
  handle(at: number): Handle | undefined
  attributeNames(at: number): string | undefined
}

/** Total and used space of a file system, in bytes or in inodes. */
export interface SpaceUsage {
  total: bigint
  used: bigint
  /** For unprivileged users. Root may have more. */
  available: bigint
}

/** A change of group and permission bits, for a file without set-id bits, capability and ACL. */
export interface FileChange {
  handle: Handle
  /** Expected group and mode (with type bits). A file that differs is not changed. */
  seenGroup: number
  seenMode: number
  /** Expected ctime in milliseconds, and whether it must match too. */
  changed: number
  needsSameTime: boolean
  group: number
  /** Permission bits. */
  mode: number
}

/** File changes that other threads make while this one continues. */
export interface FileChangeBatch extends Disposable {
  /** Copies the values of the object. */
  set(at: number, change: FileChange): void
  /** Starts the first `count` changes. Their handles must be open until `finish` returns. */
  start(count: number): void
  /** Waits for the changes. @returns the number of changes that were not made */
  finish(): number
  /**
   * `made`: the file is changed and its handle closed. `odd`: the file differs or cannot be changed, and is untouched.
   * `half`: the file has its group, but lacks its permission bits.
   */
  outcome(at: number): 'made' | 'odd' | 'half'
}

/** All operations on inodes. They are relative to handles and follow no link unless documented. */
export interface Inodes {
  /** @throws {SystemError} ELOOP if any component of the absolute path is a link */
  openLinkFree(path: string): Handle
  /**
   * Returns the file system type at an absolute path from the kernel's caches. Returns undefined if a server or daemon
   * may have to respond, or before Linux 6.8.
   */
  knownType(path: string): string | undefined
  /**
   * Checks whether the kernel resolves an absolute path, including links, from its cache. Such a lookup waits for no
   * server, daemon, disk or locked directory.
   */
  isCached(path: string): boolean
  /** Variants that open only from the kernel's cache. @throws {SystemError} EAGAIN if the cache is not enough */
  cachedOpens: Partial<Pick<Inodes, 'openLinkFree' | 'openBeneath' | 'openEntry'>>
  /** Returns the file system type of a mount. @param mountId from `stat` */
  typeOfMount(mountId: number): string | undefined
  /**
   * Opens a relative path that never leaves `root`. Follows links inside and crosses mounts.
   * @throws {SystemError} EXDEV if the path leads out, also by an absolute link; EAGAIN if a concurrent rename prevents
   * the check; ELOOP for too many links or a magic link; ENOENT; ENOTDIR; ENOSYS before Linux 5.6
   */
  openBeneath(root: Handle, path: string): Handle
  /**
   * Returns the target of the link that a handle refers to, for callers that follow links themselves.
   * @throws {SystemError} ELOOP if the kernel would not follow the link or may ignore its text: a mount with
   * nosymfollow, a link in /proc
   */
  readLink(handle: Handle): Uint8Array
  /** Opens a directory that the caller trusts, and follows links. */
  openTrusted(path: string): Handle
  openDirectory(parent: Handle, name: EntryName): Handle
  openEntry(parent: Handle, name: EntryName): Handle
  close(handle: Handle): void
  closeAll(handles: readonly Handle[]): void
  /** Returns the current path of the handle's inode, for messages and keys. modekeep never opens this path. */
  pathOf(handle: Handle): string
  stat(handle: Handle): Stat
  /** Like `stat` and `statEntry`, without a copy: a walk discards most results. */
  look(handle: Handle): StatView
  viewEntry(parent: Handle, name: EntryName): StatView
  /** Two batches: the kernel fills one while the walk processes the other. Between two steps both are free. */
  statBatches(): readonly [StatBatch, StatBatch]
  /** Undefined if no other thread is available: the caller then makes the changes itself. */
  changes(size: number): FileChangeBatch | undefined
  /** Returns the fields of `stat` that a walk checks again before it changes an inode. */
  ownership(handle: Handle): Pick<Stat, 'gid' | 'mode' | 'changed'>
  statEntry(parent: Handle, name: EntryName): Stat
  /** Queries the server or daemon: cached attributes stay valid for seconds after a daemon has ended. */
  queryEntry(parent: Handle, name: EntryName): Stat
  /** Never queries a server or a daemon: enough to identify a mount. Without a name, it stats the handle itself. */
  statMountPoint(parent: Handle, name?: EntryName): Stat
  /** Creates an empty file. Fails with EEXIST if the name exists. */
  createFile(parent: Handle, name: EntryName, mode: number): void
  createDirectory(parent: Handle, name: EntryName, mode: number): void
  removeFile(parent: Handle, name: EntryName): void
  /** Fails unless the directory is empty. */
  removeDirectory(parent: Handle, name: EntryName): void
  /** Returns a block of getdents64(2) for dirents.ts, or an empty one at the end. */
  readEntries(directory: Handle): Uint8Array
  seekEntries(directory: Handle, next: bigint): void
  /** Changes only the group. */
  chown(handle: Handle, gid: number): void
  chmod(handle: Handle, mode: number): void
  /** Returns the limit of open handles of the process. */
  handleLimit(): number
  /** Opens the same inode a second time, for another thread. */
  duplicate(handle: Handle): Handle
  getAttribute(handle: Handle, name: string): Uint8Array | undefined
  /**
   * Lists the extended attributes of a handle's inode, separated by NUL. Most inodes have none: ''. The inode was found
   * as `name` in `parent`, and a call by name is faster. A user who exchanges the name can only hide attributes of an
   * inode that he could also remove. Values are always read through the handle.
   */
  attributeNames(handle: Handle, parent: Handle, name: EntryName): string
  setAttribute(handle: Handle, name: string, value: Uint8Array): void
  removeAttribute(handle: Handle, name: string): void
  /**
   * Writes all changes of a handle's file system to its disk, and returns when they are durable.
   * @throws {SystemError} if the disk could not write a change
   */
  syncFileSystem(handle: Handle): void
  /**
   * Names the file system across reboots and devices by its UUID, from the kernel or the superblock. Without a UUID,
   * the name is statfs' f_fsid.
   */
  fileSystemId(handle: Handle): string
  /** Returns the name by f_fsid, which kernels and versions without UUID recorded. Undefined if f_fsid is 0. */
  formerFileSystemId(handle: Handle): string | undefined
  /** Checks whether the handle's mount or file system is read-only. Queries the server or daemon, as `space` does. */
  isReadOnly(handle: Handle): boolean
  /** Calls statfs(2), which queries the file system's server or daemon. */
  space(handle: Handle): { bytes: SpaceUsage; inodes: SpaceUsage }
}

/** Returns the operations with the variants of `Inodes.cachedOpens` that the host has. */
export function openOnlyCached(inodes: Inodes): Inodes {
  return { ...inodes, ...inodes.cachedOpens }
}
