import { quoted, Refusal } from '../errors/refusal.ts'
import { deferClose, formatDeviceId, type Handle, type Host, hasDisk } from '../host/host.ts'
import { FairSemaphore } from '../host/semaphore.ts'
import { parseMountinfo } from './mountinfo.ts'
import { createMountFinder, toPathPrefix } from './tree-location.ts'

/** Timeout of a server, and of a stopped daemon, which may be continued. A running daemon has the timeout of a helper. */
export const RESPONSE_TIMEOUT_MS = 5000

/** File systems of a server or a daemon. A process that opens a path on them can wait for it indefinitely. */
const REMOTE_TYPES = /^(fuse(blk)?(\..*)?|nfs4?|cifs|smb3|ceph|9p|afs|lustre|gfs2?|ocfs2)$/

export const isRemoteType = (fsType: string): boolean => REMOTE_TYPES.test(fsType)

/** Checks whether a path is unresponsive because of a server or daemon. The path is absolute, normalized and without links. */
export type UnresponsiveCheck = (path: string) => Promise<boolean>

/** The process that looks a path up. @property isolatesWalks whether it must not wait for a locked directory either */
export interface LookupCaller {
  host: Host
  isolatesWalks?: true | undefined
}

/**
 * Creates a check that another process performs once for each set of servers. A process that waits for a FUSE daemon after the
 * daemon has read the request cannot be killed.
 * @param mountsTo of a mount table that the caller has read
 */
export function createUnresponsiveCheck(
  { host, isolatesWalks }: LookupCaller,
  mountsTo = createMountFinder(host.mounts.table()),
): UnresponsiveCheck {
  const serversTo = createRemoteDeviceFinder(mountsTo)
  const checks = new Map<string, Promise<boolean>>()
  return async (path) => {
    const servers = serversTo(path)
    if (servers === '') return isolatesWalks === true && isBehindLockedDirectory(host, path)
    return checks.getOrInsertComputed(servers, () => isLookupUnanswered(host, path, `servers ${servers}`))
  }
}

/** Limit of concurrent lookups by other processes. Each process is small. */
const MAX_LOOKUPS = 64
const lookupTurns = new FairSemaphore(MAX_LOOKUPS)

/**
 * Checks whether the lookup of a path on local file systems gets no answer. A process of a pod can keep a directory of its
 * volume locked, and the path of another volume may lead through that directory.
 */
async function isBehindLockedDirectory(host: Host, path: string): Promise<boolean> {
  return !host.inodes.isCached(path) && (await lookUpIsolated(host, path)) === undefined
}

/** Looks a path up in another process, links included. @returns as `Daemons.lookUp` */
export async function lookUpIsolated({ daemons, inodes }: Host, path: string): ReturnType<Host['daemons']['lookUp']> {
  using _turn = await lookupTurns.take()
  const root = inodes.openTrusted('/')
  using _ = deferClose(inodes, root)
  return await daemons.lookUp(root, Buffer.from(path.slice(1)), RESPONSE_TIMEOUT_MS, `path ${path}`)
}

/**
 * Checks one path. Reads the mount table only if the path's file system is not known to be local, because the table can be long.
 * @param within a directory below which links are followed; without it no link is followed
 */
export async function isUnresponsivePath(caller: LookupCaller, path: string, within?: string): Promise<boolean> {
  const { host } = caller
  if (isRecordedLocal(host, path)) return false
  if (await createUnresponsiveCheck(caller)(path)) return true
  if (within === undefined || !hasRemoteBelow(host, within)) return false
  return isLookupUnanswered(host, path, `below ${within}`)
}

/** Checks whether a remote file system is mounted below a directory. A link in the directory may lead to it. */
export function hasRemoteBelow({ mounts }: Host, directory: string): boolean {
  const isBelow = (mountPoint: string) => mountPoint.startsWith(toPathPrefix(directory)) && mountPoint !== directory
  return parseMountinfo(mounts.table()).some(
    ({ fsType, mountPoint }) => REMOTE_TYPES.test(fsType) && isBelow(mountPoint),
  )
}

/** Checks one path by another process, which follows links. @param about see Daemons.answers */
export async function isLookupUnanswered({ daemons, inodes }: Host, path: string, about: string): Promise<boolean> {
  const root = inodes.openTrusted('/')
  using _ = deferClose(inodes, root)
  return !(await daemons.answers(root, Buffer.from(path.slice(1)), RESPONSE_TIMEOUT_MS, about))
}

/** The reason for which a lookup on local file systems does not end. */
export const LOOKUP_CAUSE = 'a process keeps a directory of the path locked, or a disk does not respond'

/** @param what the unresponsive object @param then the step to take, or that modekeep takes, after it responds */
export function formatUnresponsive(what: string, then: string): string {
  return `${what} does not respond (the server or the daemon of its file system hangs, or a process keeps a directory of the path locked): repair that on the node, then ${then}`
}

/** Creates the refusal of an operator's call that names an unresponsive directory, or a volume in it. */
export function createUnresponsiveRefusal(path: string): Refusal {
  return Refusal.of('unresponsive', formatUnresponsive(`directory ${quoted(path)}`, 'call this again'))
}

/** Checks whether a mount depends on no server or daemon. @param path the path of the mount */
export function isLocalMount(host: Host, mountId: number, path: string): boolean {
  const type = host.inodes.typeOfMount(mountId)
  return type === undefined ? createLocalPathCheck(host)(path) : !REMOTE_TYPES.test(type)
}

/**
 * Checks whether a mount tree depends on no server or daemon. The mount table has no row of a detached mount, but may have one of
 * its device.
 * @param path the path that it is a clone of, if that is known
 */
export function isLocalTree({ inodes, mounts }: Host, tree: Handle, path: string): boolean {
  const { device } = inodes.statMountPoint(tree)
  const table = mounts.table()
  const shown = parseMountinfo(table).find((row) => row.device === formatDeviceId(device))
  if (shown !== undefined) return !REMOTE_TYPES.test(shown.fsType)
  if (hasDisk(device)) return true
  // The mount table has another device number for btrfs than the files have.
  return path.startsWith('/') && createMountFinder(table)(path).at(-1)?.fsType === 'btrfs'
}

/** Creates a check whether a path depends on no server or daemon. Reads the mount table once. */
export function createLocalPathCheck(host: Host): (path: string) => boolean {
  const findRemoteDevices = createRemoteDeviceFinder(createMountFinder(host.mounts.table()))
  return (path) => findRemoteDevices(path) === ''
}

/** Checks whether one path depends on no server or daemon. */
export function isLocalPath(host: Host, path: string): boolean {
  return isRecordedLocal(host, path) || createLocalPathCheck(host)(path)
}

/** Checks the file system type that is known without reading the mount table. */
function isRecordedLocal({ inodes }: Host, path: string): boolean {
  const type = inodes.knownType(path)
  return type !== undefined && !REMOTE_TYPES.test(type)
}

/** Creates a function that lists the devices of the remote file systems that a path leads through; '' if there are none. */
export function createRemoteDeviceFinder(mountsTo: ReturnType<typeof createMountFinder>): (path: string) => string {
  const remote = (path: string) => mountsTo(path).filter(({ fsType }) => REMOTE_TYPES.test(fsType))
  return (path) =>
    remote(path)
      .map(({ device }) => device)
      .join(' ')
}
