import { closing, deviceName, type Handle, type Host, hasDisk } from '../host/host.ts'
import { Turns } from '../host/turns.ts'
import { quoted, Refusal } from '../refusal/refusal.ts'
import { parseMountinfo } from './mountinfo.ts'
import { createMountFinder, toPathPrefix } from './tree-location.ts'

/** Milliseconds for a server, and for a daemon that is stopped: it may go on. One that runs has as long as a helper. */
export const RESPONSE_TIMEOUT_MS = 5000

/** File systems that a server or a daemon tells of: whoever opens something there waits for it, maybe for ever. */
const REMOTE_TYPES = /^(fuse(blk)?(\..*)?|nfs4?|cifs|smb3|ceph|9p|afs|lustre|gfs2?|ocfs2)$/

export const isRemoteType = (fsType: string): boolean => REMOTE_TYPES.test(fsType)

/** Whether a server or a daemon on the way to a path, absolute, normal and without links, does not respond. */
export type UnresponsiveCheck = (path: string) => Promise<boolean>

/** The process that looks a path up. @property isolatesWalks it must not wait for a directory that is locked either */
export interface LookupCaller {
  host: Host
  isolatesWalks?: true | undefined
}

/** Each is asked once, by another process: whoever waits for a FUSE daemon that has taken a request cannot be killed. */
export function createUnresponsiveCheck({ host, isolatesWalks }: LookupCaller): UnresponsiveCheck {
  const serversTo = createRemoteDeviceFinder(host)
  const checks = new Map<string, Promise<boolean>>()
  return async (path) => {
    const servers = serversTo(path)
    if (servers === '') return isolatesWalks === true && isBehindLockedDirectory(host, path)
    return checks.getOrInsertComputed(servers, () => isUnresponsive(host, path, `servers ${servers}`))
  }
}

/** Lookups that other processes make at a time: each process is small. */
const MAX_LOOKUPS = 64
const lookupTurns = new Turns(MAX_LOOKUPS)

/**
 * Whether the lookup of a path on this node's own file systems gets no answer. A process of a pod can keep a directory of its
 * volume locked, and the path of another volume may lead through that.
 */
async function isBehindLockedDirectory(host: Host, path: string): Promise<boolean> {
  return !host.inodes.isCached(path) && (await lookUpIsolated(host, path)) === undefined
}

/** Looks a path up in another process, links included. @returns as `Daemons.lookUp` */
export async function lookUpIsolated({ daemons, inodes }: Host, path: string): ReturnType<Host['daemons']['lookUp']> {
  using _turn = await lookupTurns.take()
  const root = inodes.openTrusted('/')
  using _ = closing(inodes, root)
  return await daemons.lookUp(root, Buffer.from(path.slice(1)), RESPONSE_TIMEOUT_MS, `path ${path}`)
}

/**
 * The same of one path; the mount table, which may be long, is read only where it must be.
 * @param within a directory below which links are followed; undefined: none is
 */
export async function isUnresponsivePath(caller: LookupCaller, path: string, within?: string): Promise<boolean> {
  const { host } = caller
  if (isRecordedLocal(host, path)) return false
  if (await createUnresponsiveCheck(caller)(path)) return true
  if (within === undefined || !hasRemoteBelow(host, within)) return false
  return isUnresponsive(host, path, `below ${within}`)
}

/** Links may lead to what others tell of, where that is mounted below. */
export function hasRemoteBelow({ mounts }: Host, directory: string): boolean {
  const isBelow = (mountPoint: string) => mountPoint.startsWith(toPathPrefix(directory)) && mountPoint !== directory
  return parseMountinfo(mounts.table()).some(
    ({ fsType, mountPoint }) => REMOTE_TYPES.test(fsType) && isBelow(mountPoint),
  )
}

/** Asks, wherever the path leads: links are followed. @param about see Daemons.answers */
export async function isUnresponsive({ daemons, inodes }: Host, path: string, about: string): Promise<boolean> {
  const root = inodes.openTrusted('/')
  using _ = closing(inodes, root)
  return !(await daemons.answers(root, Buffer.from(path.slice(1)), RESPONSE_TIMEOUT_MS, about))
}

/** Why a lookup does not end on this node's own file systems. */
export const LOOKUP_CAUSE = 'a process keeps a directory of the path locked, or a disk does not respond'

/** @param what does not respond @param then what is done, or to be done, once it responds */
export function formatUnresponsive(what: string, then: string): string {
  return `${what} does not respond (the server or the daemon of its file system hangs, or a process keeps a directory of the path locked): repair that on the node, then ${then}`
}

/** What an operator is told who names a directory, or a volume that was there. */
export function createUnresponsiveRefusal(path: string): Refusal {
  return new Refusal(formatUnresponsive(`directory ${quoted(path)}`, 'call this again'))
}

/** Whether nobody but this node is asked for what a mount shows. @param path where it is */
export function isLocalMount(host: Host, mountId: number, path: string): boolean {
  const type = host.inodes.typeOfMount(mountId)
  return type === undefined ? createLocalPathCheck(host)(path) : !REMOTE_TYPES.test(type)
}

/**
 * The same of a tree, also of a detached mount, which is in no table: its device may be.
 * @param path what it is a clone of, if that is known
 */
export function isLocalTree({ inodes, mounts }: Host, tree: Handle, path: string): boolean {
  const { device } = inodes.statMountPoint(tree)
  const table = mounts.table()
  const shown = parseMountinfo(table).find((row) => row.device === deviceName(device))
  if (shown !== undefined) return !REMOTE_TYPES.test(shown.fsType)
  if (hasDisk(device)) return true
  // Of btrfs the table has other devices than its files.
  return path.startsWith('/') && createMountFinder(table)(path).at(-1)?.fsType === 'btrfs'
}

/** Whether nobody but this node is asked for what lies at a path. Reads the mount table once. */
export function createLocalPathCheck(host: Host): (path: string) => boolean {
  const findRemoteDevices = createRemoteDeviceFinder(host)
  return (path) => findRemoteDevices(path) === ''
}

/** The same of one path. */
export function isLocalPath(host: Host, path: string): boolean {
  return isRecordedLocal(host, path) || createLocalPathCheck(host)(path)
}

/** Saves the reading of the mount table. */
function isRecordedLocal({ inodes }: Host, path: string): boolean {
  const type = inodes.knownType(path)
  return type !== undefined && !REMOTE_TYPES.test(type)
}

/** By path: the devices of the file systems on the way to it that others tell of; '' where there are none. */
export function createRemoteDeviceFinder({ mounts }: Host): (path: string) => string {
  const mountsTo = createMountFinder(mounts.table())
  const remote = (path: string) => mountsTo(path).filter(({ fsType }) => REMOTE_TYPES.test(fsType))
  return (path) =>
    remote(path)
      .map(({ device }) => device)
      .join(' ')
}
