import type { DatabaseSync } from 'node:sqlite'
import type { HelperRunner } from './helpers.ts'
import type { IdMap } from './id-map.ts'
import type { EntryName, Handle, Inodes } from './inodes.ts'
import type { TrustedFiles } from './trusted-files.ts'
import type { WorkerCall, WorkerCallEnd } from './worker-process.ts'

export * from './inodes.ts'
export { getErrno, refuseOnErrno, SystemError, tolerateErrno } from './system-error.ts'

/** MOUNT_ATTR_ bits of mount_setattr(2) to set and to clear. */
export interface MountFlags {
  set: number
  clear: number
}

/** A mount is created detached, configured, and attached last. */
export interface MountOperations {
  /**
   * Creates a detached mount of a directory.
   * @param isRecursive also clones the mounts below, except unbindable ones
   */
  cloneTree(source: Handle, isRecursive?: boolean): Handle
  /**
   * Creates a detached mount of a new file system, or of the one on an open block device. If that is mounted already,
   * the mounts share it with the options of the first.
   * @param options fsconfig(2) strings `key=value` or flags; `ro` makes the file system itself read-only
   * @throws {SystemError} of `fsopen` ENODEV if the kernel lacks the file system; of `fsmount` EBUSY if the device is
   * in use or mounted with another `ro`; EACCES if it is read-only; EINVAL if it has no such file system
   */
  createTree(fsType: string, options: readonly string[], device?: Handle): Handle
  /**
   * Also makes the mount private: mounts that a pod makes inside must not propagate to the source.
   * @param isRecursive also applies to every mount below it
   */
  setFlags(tree: Handle, flags: MountFlags, isRecursive?: boolean): void
  /**
   * Maps owners and groups that the tree shows and writes (idmapped mount, Linux 5.12); the disk does not change.
   * Allowed once per tree, before `attach`.
   * @param map one that `describeIdMapFault` accepts
   * @throws {SystemError} of `clone`, `uid_map` or `gid_map` if no user namespace can be made; of `mount_setattr`
   * EINVAL if the file system does not support it, EPERM if the tree is idmapped already
   */
  mapIds(tree: Handle, map: IdMap): void
  attach(tree: Handle, target: Handle): void
  /** Attaches below the mount with root `target` (MOVE_MOUNT_BENEATH, Linux 6.5). Returns false on older kernels. */
  attachBeneath(tree: Handle, target: Handle): boolean
  /**
   * Removes the topmost mount at parent/name. EINVAL: no mount is there.
   * @returns false if it is in use, so that it stays
   */
  unmount(parent: Handle, name: EntryName): boolean
  /**
   * Removes the topmost mount at parent/name; open files stay usable. EINVAL: no mount is there.
   * @param abort first ends the connection to a FUSE daemon: pending requests fail
   */
  detach(parent: Handle, name: EntryName, abort?: boolean): void
  /** Checks for mounts on a mount. @param mountId from `stat` @returns undefined before Linux 6.8 */
  hasMountsOn(mountId: number): boolean | undefined
  /**
   * Returns the MOUNT_ATTR_ bits of an attached mount.
   * @param mountId from `stat` @returns undefined before Linux 6.8, or if the mount was removed
   */
  attributesOf(mountId: number): number | undefined
  /** Returns the id of a handle's mount in `table()`, which omits detached mounts. The kernel reuses these ids. */
  tableId(handle: Handle): number
  /** Returns /proc/self/mountinfo. It grows with the node's mounts, so it is read only if statx is not enough. */
  table(): string
}

/** A loop device attached to a file. */
export interface LoopDevice {
  /** Open; closed like any handle. */
  device: Handle
  isReadOnly: boolean
  /** False if it shows only a part of the file. */
  isWhole: boolean
}

/** Identity of the storage below a file system, or of an image or a device. The content has no influence on it. */
export interface BackingStorage {
  /** A name that is valid in this boot. */
  place: string
  /** For messages: `image "/srv/a" (inode 12)`; '' if nothing identifies it. */
  shown: string
  /** Names that stay valid after a reboot; one match identifies it. Empty if the kernel reports none. */
  identities: string[]
  /** Identities that earlier kernels and versions recorded. They are compared and never recorded again. */
  former?: string[] | undefined
}

export interface BlockDeviceOperations {
  /** Finds the storage of a handle's file system. Several devices (btrfs) are one backing. */
  backingOf(handle: Handle): BackingStorage
  /** Finds the storage of a file system that would be mounted from this device node or image file. */
  asBacking(source: Handle): BackingStorage
  /** Opens a device by its node. An open device belongs to the same disk until it is closed. */
  open(node: Handle): Handle
  isReadOnly(device: Handle): boolean
  /** Returns `/dev/sdb`, for messages and for the mount table. */
  nameOf(device: Handle): string
  /** Checks whether a row of the mount table shows this device, under any of its names. */
  isShownBy(device: Handle, row: { device: string; fsType: string; source: string }): boolean
  /** Reads up to `length` bytes from the start. */
  start(device: Handle, length: number): Uint8Array
  /** Finds the loop device that already shows the file: two would write to it with separate caches. */
  loopOf(image: Handle): LoopDevice | undefined
  /**
   * Attaches a file to a loop device. The kernel detaches it after its last mount and handle, also after a crash.
   * @throws {SystemError} EBUSY if others take each free device first; ENOENT of `/dev/loop-control`
   */
  attachLoop(image: Handle, readOnly: boolean): Handle
  /**
   * Names the devices of a handle's file system. A later disk or image at the same device number has another name.
   * Returns an empty list for a file system without a device.
   */
  devicesOf(handle: Handle): string[]
  /**
   * Checks whether a mount or another exclusive user claims a device of `devicesOf`. Changes nothing. Returns false if
   * that disk or image is no longer attached.
   */
  isClaimed(device: string): boolean
  /** Finds the users that keep a file system alive. Never waits for a server or a daemon. */
  findUsers(fileSystem: MountedFileSystem): FileSystemUsers
}

/** A file system, identified by the record of one of its mounts. */
export interface MountedFileSystem {
  /** Empty for file systems in memory, of a server or of a daemon. */
  devices: readonly string[]
  /** The device number of its root, as in `Stat`. */
  device: number
  mountId: string
  /** Its id in the mount table; undefined if it was not read. */
  tableId?: number | undefined
  /** The mount namespace of the process that made the mount. */
  namespace: string
  /**
   * The mount namespaces that had a private copy of the mount when it was unmounted in use. From then on the device number
   * identifies the file system only there: once it has ended, the kernel gives the number to another one.
   */
  copyNamespaces?: readonly string[] | undefined
}

export interface FileSystemUsers {
  /** True if it is mounted here, in the recorded namespace or in a container: their own unmount ends it. */
  isMounted: boolean
  /** Processes with an open file, a working directory or a program in it, or with a private copy of its mount. */
  processes: NamedProcess[]
  /** The mount namespaces with a private copy of its mount. */
  copyNamespaces: string[]
}

export interface NamedProcess {
  pid: number
  name: string
}

/** A process that serves a mount. */
export interface Daemon {
  pid: number
  /** State letter of /proc/PID/stat: R, S, D, T (stopped), … */
  state: string
}

/** Identifies a process, also after its pid is reused. */
export interface ProcessId {
  pid: number
  /** Start time in clock ticks after the boot. */
  start: string
}

/**
 * The processes that serve mounts. Their parent has ended. Only marked processes with modekeep's user ids count, since
 * any user may choose the same arguments and variables. Root may copy the mark too, so `known` restricts the search to
 * processes recorded when a mount was ready.
 */
export interface DaemonOperations {
  /** Finds the daemon with this argument: a path that is unique to it. */
  find(argument: string, known?: readonly ProcessId[]): Daemon | undefined
  /**
   * Checks whether the mount at parent/name responds in time; an error is a response. True if the check cannot run.
   * @param key key of the check: concurrent checks with the same key share one lookup
   */
  answers(parent: Handle, name: EntryName, milliseconds: number, key?: string): Promise<boolean>
  /** Looks the name up in another process. @returns 'not asked' if the node lacks the program; undefined on timeout */
  lookUp(
    parent: Handle,
    name: EntryName,
    milliseconds: number,
    key?: string,
  ): Promise<'found' | 'not found' | 'not asked' | undefined>
  /** Lists the processes with a path below this directory among their arguments, including children of daemons. */
  below(directory: string): ProcessId[]
  /** Sends SIGKILL to the processes that `below` lists. */
  kill(directory: string, known?: readonly ProcessId[]): void
}

export interface Lock extends Disposable {
  /** Takes effect once. @param discard also removes the lock file; the lock is released even if that fails */
  release(discard?: boolean): void
}

export interface Host {
  inodes: Inodes
  mounts: MountOperations
  blocks: BlockDeviceOperations
  files: TrustedFiles
  helpers: HelperRunner
  daemons: DaemonOperations
  /** Runs a task in a worker process that ends with this one. */
  callWorker(call: WorkerCall): Promise<WorkerCallEnd>
  /** Undefined if another process holds the lock. A killed holder loses it even while it waits in the kernel. */
  tryLock(path: string): Lock | undefined
  /** Checks whether a process holds the lock. Concurrent checks do not disturb each other. */
  isLocked(path: string): boolean
  /** Checks whether an isolated process holds this lock. A killed one holds it until it has ended. */
  isWorkerLockHeld(lock: string): boolean
  /** Takes that lock for this process, which runs the task itself. Returns undefined if it is held. */
  tryWorkerLock(lock: string): Lock | undefined
  /** Returns the pid of a visible lock holder. Briefly blocks every lock operation of the node. */
  lockHolder(path: string): number | undefined
  /** A text that changes with each progress of a process that waits in the kernel (state D); else undefined. */
  readBlockedActivity(pid: number): string | undefined
  /** Calls the function while no process holds the lock or can take it. */
  whileUnlocked<T>(path: string, call: () => T): T | 'locked'
  /**
   * Kills a process of this program that holds the lock, has this word as its first argument, and lost its parent.
   * Returns its pid. Only a child of the process that starts such workers may call it.
   */
  endAbandoned(lock: string, word: string): number | undefined
  /** Its integers are bigint. @param which `existing`: a missing file is not created */
  openDatabase(path: string, which?: 'existing'): DatabaseSync
  /** Creates the file of a database in WAL mode with this content. Its name is durable once its directory is synced. */
  createDatabase(path: string, fill: (database: DatabaseSync) => void): void
  /** Differs on every boot. Mount records of an earlier boot are void. */
  bootId(): string
  /** Milliseconds of the monotonic clock, which all processes of a boot share. */
  monotonicMs(): number
  /** Returns the uids of pods with a visible process. */
  runningPods(): ReadonlySet<string>
  /**
   * Takes a snapshot of all processes. The returned function checks by cgroups whether a container has any. It returns
   * true if not all of the node's processes are visible.
   */
  processesNow(): (container: string) => boolean
  /** Names the mount namespace of this process. Other namespaces have other mount ids, or hide the mounts. */
  mountNamespace(): string
}
