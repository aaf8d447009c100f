import type { DatabaseSync } from 'node:sqlite'
import type { Handle, Name } from './handle.ts'
import type { Helpers } from './helpers.ts'
import type { IdMap } from './id-map.ts'
import type { Inodes } from './inodes.ts'
import type { IsolatedTask, IsolatedTaskEnd } from './isolated-process.ts'
import type { TrustedFiles } from './trusted-files.ts'

export { deferClose, type Handle, type Name, useOrClose } from './handle.ts'
export * from './inodes.ts'
export { errorCode, refuseOnErrno, SystemError, tolerateErrno } from './system-error.ts'

/** Mount attributes as mount_setattr(2) takes them: MOUNT_ATTR_ bits to set and to clear. */
export interface MountFlags {
  set: number
  clear: number
}

/** Mounts are made detached, finished, and attached last. */
export interface Mounts {
  /**
   * A detached mount of a directory.
   * @param isRecursive with what is mounted below it, but for mounts that are unbindable; else the directory alone
   */
  cloneTree(source: Handle, isRecursive?: boolean): Handle
  /**
   * A detached mount of a new file system, or of the one on a block device held open. One that is mounted already is
   * shared, with the options it was mounted with first.
   * @param options fsconfig(2) strings `key=value` or flags; `ro` makes the file system itself read-only
   * @throws {SystemError} of `fsopen` ENODEV if the kernel lacks the file system; of `fsmount` EBUSY where the device
   *   is mounted with another `ro`, or otherwise in use; EACCES where the device is read-only; EINVAL where the device
   *   has no such file system
   */
  createTree(fsType: string, options: readonly string[], device?: Handle): Handle
  /**
   * Also makes the mount private: what a pod mounts inside must not spread to the source.
   * @param isRecursive the same for every mount below it
   */
  setFlags(tree: Handle, flags: MountFlags, isRecursive?: boolean): void
  /**
   * Owners and groups show through the tree, and are written, as mapped (an idmapped mount, Linux 5.12). Nothing changes
   * on disk. Once per tree, before it is attached.
   * @param map without a fault: see mapFault
   * @throws {SystemError} of `clone`, `uid_map` or `gid_map` where no user namespace can be made for it; of
   *   `mount_setattr` EINVAL where the file system cannot, EPERM where the tree is idmapped already
   */
  mapIds(tree: Handle, map: IdMap): void
  attach(tree: Handle, target: Handle): void
  /** Under the mount whose root `target` is (MOVE_MOUNT_BENEATH, Linux 6.5). False: this kernel cannot. */
  attachBeneath(tree: Handle, target: Handle): boolean
  /**
   * Removes the topmost mount at parent/name, unless it is in use. EINVAL: none is there.
   * @returns false where it is in use: then it stays
   */
  unmount(parent: Handle, name: Name): boolean
  /**
   * Removes the topmost mount at parent/name; users that have it open keep their view. EINVAL: none is there.
   * @param abort ends the connection to a FUSE daemon first: whoever waits for an answer of it gets an error
   */
  detach(parent: Handle, name: Name, abort?: boolean): void
  /**
   * Whether anything is mounted on a mount, by the id that `stat` tells; undefined where the kernel is older than Linux 6.8.
   */
  hasMountsOn(mountId: number): boolean | undefined
  /**
   * The MOUNT_ATTR_ bits of an attached mount, by the id that `stat` tells; undefined where the kernel is older than
   * Linux 6.8, or the mount is gone.
   */
  attributesOf(mountId: number): number | undefined
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

/** What a file system lies on, or an image or a device itself: whatever its content says. */
export interface Backing {
  /** Names it in this boot. */
  place: string
  /** For people: `image "/srv/a" (inode 12)`; '' where nothing is known of it. */
  shown: string
  /** It is known again, after a reboot too, by any of them. Empty: the kernel tells none. */
  identities: string[]
  /** Identities that earlier kernels and versions recorded of it. They are compared, and not recorded any more. */
  former?: string[] | undefined
}

export interface BlockDevices {
  /** What the file system of a handle lies on. Several devices (btrfs) are one backing. */
  backingOf(handle: Handle): Backing
  /** What a file system would lie on that is mounted from this device's node or image file. */
  asBacking(source: Handle): Backing
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
  /**
   * Names the devices that a handle's file system lies on, so that a later disk or image at the same device number has
   * another name. Returns an empty list for a file system without a device.
   */
  devicesOf(handle: Handle): string[]
  /**
   * Whether a mounted file system, or another exclusive user, holds a device of `devicesOf`. It changes nothing. Returns
   * false where that disk or image is not attached any more.
   */
  isClaimed(device: string): boolean
  /** Finds what keeps a file system alive. Waits for no server and no daemon. */
  findUsers(fileSystem: MountedFileSystem): FileSystemUsers
}

/** A file system, as one mount of it was recorded. */
export interface MountedFileSystem {
  /** Empty for memory, a server's or a daemon's. */
  devices: readonly string[]
  /** The device number of its root, as `Stat` has it. */
  device: number
  mountId: string
  /** Its id in the mount table; undefined: nobody read it. */
  tableId?: number | undefined
  /** The mount namespace that the mount was made in. */
  namespace: string
}

export interface FileSystemUsers {
  /** Its mount in this namespace, in the one that it was made in, or in a container: that mount's own unmount ends it. */
  isMounted: boolean
  /** Processes with an open file, a working directory or a program in it, or with a private copy of the node's mounts. */
  processes: NamedProcess[]
}

export interface NamedProcess {
  pid: number
  name: string
}

/** A process that serves a mount. */
export interface Daemon {
  pid: number
  /** As /proc/PID/stat has it: R, S, D, T (stopped), … */
  state: string
}

/** A process, and no later one of its number. */
export interface ProcessId {
  pid: number
  /** When it was started, in clock ticks after the boot. */
  start: string
}

/**
 * The processes that serve mounts; they are children of nobody that still runs. Only what runs as modekeep itself does
 * and has its mark is one: others may choose the same arguments and variables. Root may have those too: where it is known
 * which processes there were once a mount was ready, no other is one.
 */
export interface Daemons {
  /** The one that has this among its arguments: a path that no other process was ever given. */
  find(argument: string, known?: readonly ProcessId[]): Daemon | undefined
  /**
   * Whether what is mounted at parent/name says anything in time, be it an error; true where it cannot be asked.
   * @param about names what is asked: as long as one question about it is open, no other one is asked
   */
  answers(parent: Handle, name: Name, milliseconds: number, about?: string): Promise<boolean>
  /** Looks it up in another process. @returns 'not asked' where the node has no program for that; undefined: no answer in time */
  lookUp(
    parent: Handle,
    name: Name,
    milliseconds: number,
    about?: string,
  ): Promise<'found' | 'not found' | 'not asked' | undefined>
  /** All that were given a path below this directory: also the programs that a daemon has started. */
  below(directory: string): ProcessId[]
  /** SIGKILL to them. */
  kill(directory: string, known?: readonly ProcessId[]): void
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
  /** Runs an errand in another process of this program. */
  runErrand(errand: IsolatedTask): Promise<IsolatedTaskEnd>
  /** Undefined while somebody else has it. A killed holder has it no more, also where the kernel cannot end it yet. */
  tryLock(path: string): Lock | undefined
  /** Whether somebody has the lock. Those who ask do not take one another for its holder. */
  isLocked(path: string): boolean
  /** Whether an errand with this lock is under way, or only its end is waited for. */
  hasErrand(lock: string): boolean
  /** Takes that lock for this process, which runs an errand itself. Undefined while somebody else has it. */
  tryErrand(lock: string): Lock | undefined
  /** Returns the process that has the lock, as far as it is seen here. Stops all locks of the node for a moment. */
  lockHolder(path: string): number | undefined
  /**
   * Returns a text that changes whenever a process makes progress, while the process waits in the kernel for a lock or a disk;
   * undefined otherwise.
   */
  readBlockedActivity(pid: number): string | undefined
  /** Looks while nobody has the lock, and nobody can take it. */
  whileUnlocked<T>(path: string, look: () => T): T | 'locked'
  /**
   * Kills a process of this program that has the lock, was called by this word, and whose parent has ended: it works for
   * nobody. Its number is returned. Only a child of whoever calls such processes may ask.
   */
  endAbandoned(lock: string, word: string): number | undefined
  /** Its integers are bigint. */
  openDatabase(path: string): DatabaseSync
  /** Changes with every boot; records of mounts from another boot are void. */
  bootId(): string
  /** Milliseconds of the monotonic clock, the same for all processes of a boot. */
  monotonicMs(): number
  /** The uids of the pods of which a process is seen here. */
  runningPods(): ReadonlySet<string>
  /**
   * Looks once at all processes. What it returns tells whether a container of a name has any, as far as cgroups tell; true
   * where not all of the node are seen here.
   */
  processesNow(): (container: string) => boolean
  /** Names the mount namespace of this process: mounts of another have other ids, or are not seen. */
  mountNamespace(): string
}
