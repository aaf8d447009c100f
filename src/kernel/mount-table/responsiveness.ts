import { dirname } from 'node:path'
import { createFault, type Fault } from '../../errors/fault.ts'
import { quoteValue, Refusal } from '../../errors/refusal.ts'
import {
  deferHandleClose,
  formatDeviceId,
  getErrno,
  type Handle,
  type Host,
  type Inodes,
  isDirectory,
  isDiskDevice,
  openOnlyCached,
  SystemError,
} from '../host.ts'
import { FairSemaphore } from '../waiting.ts'
import { type MountRow, parseMountinfo } from './mountinfo.ts'
import { createMountFinder, toPathPrefix } from './tree-location.ts'

/** Timeout of a server, and of a stopped daemon, which may be continued. A running daemon has the timeout of a helper. */
export const RESPONSE_TIMEOUT_MS = 5000

/** File systems of a server or a daemon. A process that opens a path on them can wait for it indefinitely. */
const REMOTE_FS_TYPES = /^(fuse(blk)?(\..*)?|nfs4?|cifs|smb3|ceph|9p|afs|lustre|gfs2?|ocfs2)$/

export const isRemoteFsType = (fsType: string): boolean => REMOTE_FS_TYPES.test(fsType)

/** Takes an absolute, normalized path without links. */
export type UnresponsiveCheck = (path: string) => Promise<boolean>

/** The process that looks a path up. @property isolatesWalks whether it must not wait for a locked directory either */
export interface PathLookupCaller {
  host: Host
  isolatesWalks?: true | undefined
}

/**
 * Creates a check that another process performs once for each set of servers. A process that waits for a FUSE daemon after the
 * daemon has read the request cannot be killed.
 * @param mountsTo of a mount table that the caller has read
 */
export function createUnresponsiveCheck(
  { host, isolatesWalks }: PathLookupCaller,
  mountsTo = createMountFinder(host.mounts.table()),
): UnresponsiveCheck {
  const serversTo = createRemoteDeviceFinder(mountsTo)
  const checks = new Map<string, Promise<boolean>>()
  return async (path) => {
    const servers = serversTo(path)
    // A process of a pod can keep a directory of its volume locked, and the path may lead through that directory.
    if (servers === '')
      return (
        isolatesWalks === true && !host.inodes.isCached(path) && (await lookUpPathIsolated(host, path)) === undefined
      )
    return checks.getOrInsertComputed(servers, () => isLookupUnanswered(host, path, `servers ${servers}`))
  }
}

/** Limits concurrent lookups by other processes. Each process is small. */
const lookupSemaphore = new FairSemaphore(64)

/** Looks a path up in another process, links included. @returns as `DaemonOperations.lookUp` */
async function lookUpPathIsolated({ daemons, inodes }: Host, path: string): ReturnType<Host['daemons']['lookUp']> {
  using _turn = await lookupSemaphore.take()
  const root = inodes.openTrusted('/')
  using _ = deferHandleClose(inodes, root)
  return await daemons.lookUp(root, Buffer.from(path.slice(1)), RESPONSE_TIMEOUT_MS, `path ${path}`)
}

/**
 * Checks one path. Reads the mount table only if the path's file system is not known to be local, because the table can be long.
 * @param within a directory below which links are followed; without it no link is followed
 */
export async function isUnresponsivePath(caller: PathLookupCaller, path: string, within?: string): Promise<boolean> {
  const { host } = caller
  if (isPathRecordedLocal(host, path)) return false
  if (await createUnresponsiveCheck(caller)(path)) return true
  if (within === undefined || !hasRemoteMountBelow(host, within)) return false
  return isLookupUnanswered(host, path, `below ${within}`)
}

/** Checks whether a remote file system is mounted below a directory. A link in the directory may lead to it. */
export function hasRemoteMountBelow({ mounts }: Host, directory: string): boolean {
  return parseMountinfo(mounts.table()).some(
    ({ fsType, mountPoint }) =>
      isRemoteFsType(fsType) && mountPoint !== directory && mountPoint.startsWith(toPathPrefix(directory)),
  )
}

/** Returns whether another process's lookup of the path, which follows links, does not end in time. @param about key of the check: concurrent checks with one key share a lookup */
export async function isLookupUnanswered({ daemons, inodes }: Host, path: string, about: string): Promise<boolean> {
  const root = inodes.openTrusted('/')
  using _ = deferHandleClose(inodes, root)
  return !(await daemons.answers(root, Buffer.from(path.slice(1)), RESPONSE_TIMEOUT_MS, about))
}

/** The reason for which a lookup on local file systems does not end. */
export const LOCAL_LOOKUP_HANG_CAUSE = 'a process keeps a directory of the path locked, or a disk does not respond'

/** @param what the unresponsive object @param then the step to take, or that modekeep takes, after it responds */
export function createUnresponsiveFault(what: string, then: string): Fault {
  const cause = 'the server or the daemon of its file system hangs, or a process keeps a directory of the path locked'
  return createFault('unresponsive', `${what} does not respond (${cause})`, `repair that on the node, then ${then}`)
}

/** Creates the refusal of an operator's call that names an unresponsive directory, or a volume in it. */
export function createUnresponsiveRefusal(path: string): Refusal {
  return new Refusal(createUnresponsiveFault(`directory ${quoteValue(path)}`, 'call this again'))
}

/** Checks whether a mount depends on no server or daemon. @param path the path of the mount */
export function isLocalMount(host: Host, mountId: number, path: string): boolean {
  const type = host.inodes.typeOfMount(mountId)
  return type === undefined ? createLocalPathCheck(host)(path) : !isRemoteFsType(type)
}

/**
 * Checks whether a mount tree depends on no server or daemon. The mount table has no row of a detached mount, but may have one of
 * its device.
 * @param path the path that it is a clone of, if that is known
 */
export function isLocalMountTree({ inodes, mounts }: Host, tree: Handle, path: string): boolean {
  const { device } = inodes.statMountPoint(tree)
  const table = mounts.table()
  const shown = parseMountinfo(table).find((row) => row.device === formatDeviceId(device))
  if (shown !== undefined) return !isRemoteFsType(shown.fsType)
  if (isDiskDevice(device)) return true
  // The mount table has another device number for btrfs than the files have.
  return path.startsWith('/') && createMountFinder(table)(path).at(-1)?.fsType === 'btrfs'
}

/** Creates a check whether a path depends on no server or daemon. Reads the mount table once. */
export function createLocalPathCheck(host: Host): (path: string) => boolean {
  const findRemoteDevices = createRemoteDeviceFinder(createMountFinder(host.mounts.table()))
  return (path) => findRemoteDevices(path) === ''
}

export function isLocalPath(host: Host, path: string): boolean {
  return isPathRecordedLocal(host, path) || createLocalPathCheck(host)(path)
}

function isPathRecordedLocal({ inodes }: Host, path: string): boolean {
  const type = inodes.knownType(path)
  return type !== undefined && !isRemoteFsType(type)
}

/** Creates a function that lists the devices of the remote file systems that a path leads through; '' if there are none. */
function createRemoteDeviceFinder(mountsTo: ReturnType<typeof createMountFinder>): (path: string) => string {
  return (path) =>
    mountsTo(path)
      .flatMap(({ fsType, device }) => (isRemoteFsType(fsType) ? [device] : []))
      .join(' ')
}

/** Looks up paths that may be unresponsive: absolute, normalized and without links. A server or a locked directory can block them. */
export interface PathLookups {
  /** Checks whether a lookup gets no answer. An open after this check may open another directory: use `open` instead. */
  isUnresponsive(path: string): Promise<boolean>
  /**
   * Opens as `openLinkFree` does. On local file systems a caller that must not wait never waits for a directory that a
   * process keeps locked, even if directories are exchanged meanwhile.
   * @returns undefined if the lookup gets no answer
   * @throws {SystemError} as `openLinkFree`
   */
  open(path: string): Promise<Handle | undefined>
}

/** The lookups share one read of the mount table. */
export function createPathLookups(caller: PathLookupCaller): PathLookups {
  const { host, isolatesWalks } = caller
  const mountsTo = createMountFinder(host.mounts.table())
  const isUnresponsive = createUnresponsiveCheck(caller, mountsTo)
  const findRemoteDevices = createRemoteDeviceFinder(mountsTo)
  return {
    isUnresponsive,
    async open(path) {
      if (isolatesWalks && findRemoteDevices(path) === '') return openPathFromCache(caller, path, mountsTo(path))
      // The cache does not show whether a server responds, so the path is checked before the open.
      return (await isUnresponsive(path)) ? undefined : host.inodes.openLinkFree(path)
    },
  }
}

/**
 * File systems whose cached names the kernel resolves without calling the file system. Others revalidate each name, as zfs, vfat
 * and sysfs do, and so does an overlay of such a type.
 */
const CACHEABLE_FS_TYPES = /^(ext[234]|xfs|btrfs|f2fs|tmpfs|ramfs|rootfs|devtmpfs|squashfs|erofs|autofs|overlay)$/

/** Limit of lookups by another process for one path. Concurrent mounts and memory pressure can empty the cache again. */
const MAX_LOOKUP_ATTEMPTS = 3

/**
 * Opens a path from the cache alone, after another process has filled the cache. A concurrent change cannot make it wait.
 * @param mounts the mounts that the path leads through
 */
async function openPathFromCache(
  { host }: PathLookupCaller,
  path: string,
  mounts: readonly MountRow[],
): Promise<Handle | undefined> {
  const { inodes } = host
  const { openLinkFree } = openOnlyCached(inodes)
  for (let attempt = 0; ; attempt++) {
    try {
      return openLinkFree(path)
    } catch (error) {
      if (getErrno(error) !== 'EAGAIN') throw error
    }
    if (attempt === MAX_LOOKUP_ATTEMPTS) return undefined
    const answer = await lookUpPathIsolated(host, path)
    if (answer === undefined) return undefined
    if (answer === 'found' && isPathCacheable(inodes, path, mounts)) continue
    try {
      return openLinkFree(path)
    } catch (error) {
      if (getErrno(error) !== 'EAGAIN') throw error
    }
    if (answer !== 'not found') return inodes.openLinkFree(path)
    // A tmpfs caches no missing names, and the cache does not show that a path leads through a file.
    throw new SystemError('openat2', hasFileInPath(inodes, path) ? 'ENOTDIR' : 'ENOENT', path)
  }
}

/** Checks whether the kernel resolves a path from its cache alone after a lookup. The kernel and each file system must support it. */
function isPathCacheable(inodes: Inodes, path: string, mounts: readonly MountRow[]): boolean {
  if (!inodes.isCached('/')) return false
  return mounts.every(({ fsType, mountPoint }, index) => {
    // The kernel looks up no name in a file system that another one covers.
    if ((mounts[index + 1]?.mountPoint ?? path) === mountPoint) return true
    if (fsType !== 'overlay' || mountPoint !== '/') return CACHEABLE_FS_TYPES.test(fsType)
    // No user can exchange a name in the node's root directory. Another overlay may belong to a user.
    return inodes.isCached(`/${path.split('/')[1]}`)
  })
}

function hasFileInPath(inodes: Inodes, path: string): boolean {
  const { openLinkFree } = openOnlyCached(inodes)
  for (let above = dirname(path); above !== '/'; above = dirname(above)) {
    try {
      const handle = openLinkFree(above)
      using _ = deferHandleClose(inodes, handle)
      return !isDirectory(inodes.stat(handle))
    } catch (error) {
      if (getErrno(error) === undefined) throw error
    }
  }
  return false
}
