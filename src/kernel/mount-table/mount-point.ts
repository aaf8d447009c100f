import { basename, dirname } from 'node:path'
import { quoteValue, Refusal } from '../../errors/refusal.ts'
import {
  deferClose,
  errorCode,
  FILE_TYPE,
  type Handle,
  type Host,
  isDirectory,
  type Name,
  REGULAR,
  type Stat,
} from '../host.ts'
import { isGuard } from './mountinfo.ts'

/** The errors of stat for a mount whose server or daemon has ended (kubernetes mount-utils, IsCorruptedMnt). */
const BROKEN_MOUNT_ERRORS = new Set(['ENOTCONN', 'ESTALE', 'EIO', 'EACCES', 'EHOSTDOWN'])

/** The topmost mount at the mount directory, and its root inode. */
export interface MountedView {
  mountId: bigint
  device: number
  inode: bigint
  isDirectory: boolean
}

/** The type of the mount directory: kubelet creates a directory, and a volume that is not a directory needs a file. */
export type MountTarget = 'directory' | 'file' | 'missing'

/** Kubelet's directory, opened through its parent: kubelet's root may lie behind a link, the directory itself may not be one. */
export interface MountPoint {
  parent: Handle
  name: Name
  /** The path without links. Locks and records are keyed by it, so that all spellings of a path share them. */
  path: string
}

/** Returns undefined if the parent does not exist, so that no mount can exist. */
export function openMountPoint({ inodes }: Host, directory: string): (MountPoint & Disposable) | undefined {
  try {
    const parent = inodes.openTrusted(dirname(directory))
    const above = inodes.pathOf(parent)
    const name = basename(directory)
    const path = `${above === '/' ? '' : above}/${name}`
    return { parent, name: Buffer.from(name), path, ...deferClose(inodes, parent) }
  } catch (error) {
    if (errorCode(error) === 'ENOENT' || errorCode(error) === 'ENOTDIR') return undefined
    throw error
  }
}

export function isMounted(stat: Stat | 'broken' | undefined): boolean {
  return stat === 'broken' || stat?.mountRoot === true
}

export function createMissingMountPointRefusal(path: string): Refusal {
  return Refusal.of(
    'mount-directory',
    `mount directory ${quoteValue(path)} does not exist`,
    undefined,
    'kubelet creates it before it calls mount',
  )
}

/** The mount at a mount point, and the type of the mount point. */
export interface MountPointState {
  /** The topmost mount; 'broken' if stat fails (a FUSE daemon has ended, an NFS handle is stale). */
  mounted: MountedView | 'broken' | undefined
  /** The type of an unmounted mount point. It is 'directory' if a mount exists. */
  target: MountTarget
}

/** Converts the result of stat to the state of a mount point. @throws {Refusal} if it is a link or a file with content */
export function resolveMountPointState(
  host: Host,
  point: MountPoint,
  stat: Stat | 'broken' | undefined,
): MountPointState {
  if (stat === 'broken') return { mounted: 'broken', target: 'directory' }
  if (stat === undefined || !stat.mountRoot || isGuard(host, point.path, stat)) {
    return { mounted: undefined, target: classifyTarget(point, stat) }
  }
  const { mountId, device, inode } = stat
  return { mounted: { mountId: BigInt(mountId), device, inode, isDirectory: isDirectory(stat) }, target: 'directory' }
}

/** Returns the type of an unmounted mount point. @throws {Refusal} if it is a link or a file with content */
export function classifyTarget(point: MountPoint, stat: Stat | undefined): MountTarget {
  if (stat === undefined) return 'missing'
  if (isDirectory(stat)) return 'directory'
  if (isEmptyFile(stat)) return 'file'
  throw Refusal.of(
    'mount-directory',
    `mount directory ${quoteValue(point.path)} is a link or a file`,
    'remove it, kubelet makes a new directory',
  )
}

/** Checks whether a stat result is of an empty file, on which a volume that is not a directory is mounted. */
export function isEmptyFile(stat: Stat): boolean {
  return (stat.mode & FILE_TYPE) === REGULAR && stat.size === 0n && !stat.mountRoot
}

/**
 * Stats the mount through its server or daemon, which may never answer. Only a call that concerns this mount may wait for it.
 * @param isDead whether its daemon seems to have ended, so that the kernel's cached attributes must not be used
 */
export function queryPoint(
  { inodes }: Host,
  { parent, name }: MountPoint,
  isDead: boolean,
): Stat | 'broken' | undefined {
  return catchBroken(() => (isDead ? inodes.queryEntry(parent, name) : inodes.statEntry(parent, name)))
}

/** Stats a mount point without waiting for a server or a daemon. Returns undefined if the name does not exist. */
export function statPoint(host: Host, point: MountPoint): Stat | 'broken' | undefined {
  return catchBroken(() => host.inodes.statMountPoint(point.parent, point.name))
}

function catchBroken(look: () => Stat): Stat | 'broken' | undefined {
  try {
    return look()
  } catch (error) {
    const code = errorCode(error) ?? ''
    if (code === 'ENOENT') return undefined
    if (BROKEN_MOUNT_ERRORS.has(code)) return 'broken'
    throw error
  }
}
