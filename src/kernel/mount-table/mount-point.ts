import { basename, dirname } from 'node:path'
import { quoteValue, Refusal } from '../../errors/refusal.ts'
import {
  deferHandleClose,
  type EntryName,
  FILE_TYPE_MASK,
  getErrno,
  type Handle,
  type Host,
  isDirectory,
  REGULAR_FILE_TYPE,
  type Stat,
  tolerateErrno,
} from '../host.ts'
import { isGuardMount } from './mountinfo.ts'

/** The errors of stat for a mount whose server or daemon has ended (kubernetes mount-utils, IsCorruptedMnt). */
const BROKEN_MOUNT_ERRORS = new Set(['ENOTCONN', 'ESTALE', 'EIO', 'EACCES', 'EHOSTDOWN'])

/** The topmost mount at the mount directory, and its root inode. */
export interface TopmostMount {
  mountId: bigint
  device: number
  inode: bigint
  isDirectory: boolean
}

/** The type of the mount directory: kubelet creates a directory, and a volume that is not a directory needs a file. */
export type MountPointType = 'directory' | 'file' | 'missing'

/** Kubelet's directory, opened through its parent: kubelet's root may lie behind a link, the directory itself may not be one. */
export interface MountPoint {
  parent: Handle
  name: EntryName
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
    return { parent, name: Buffer.from(name), path, ...deferHandleClose(inodes, parent) }
  } catch (error) {
    if (getErrno(error) === 'ENOENT' || getErrno(error) === 'ENOTDIR') return undefined
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
  mounted: TopmostMount | 'broken' | undefined
  /** The type of an unmounted mount point. It is 'directory' if a mount exists. */
  target: MountPointType
}

/** Converts the result of stat to the state of a mount point. @throws {Refusal} if it is a link or a file with content */
export function resolveMountPointState(
  host: Host,
  point: MountPoint,
  stat: Stat | 'broken' | undefined,
): MountPointState {
  if (stat === 'broken') return { mounted: 'broken', target: 'directory' }
  if (stat === undefined || !stat.mountRoot || isGuardMount(host, point.path, stat)) {
    return { mounted: undefined, target: classifyMountPoint(point, stat) }
  }
  const { mountId, device, inode } = stat
  return { mounted: { mountId: BigInt(mountId), device, inode, isDirectory: isDirectory(stat) }, target: 'directory' }
}

/** Returns the type of an unmounted mount point. @throws {Refusal} if it is a link or a file with content */
export function classifyMountPoint(point: MountPoint, stat: Stat | undefined): MountPointType {
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
  return (stat.mode & FILE_TYPE_MASK) === REGULAR_FILE_TYPE && stat.size === 0n && !stat.mountRoot
}

/**
 * Stats the mount through its server or daemon, which may never answer. Only a call that concerns this mount may wait for it.
 * @param isDead whether its daemon seems to have ended, so that the kernel's cached attributes must not be used
 */
export function queryMountPoint(
  { inodes }: Host,
  { parent, name }: MountPoint,
  isDead: boolean,
): Stat | 'broken' | undefined {
  return catchBrokenMount(() => (isDead ? inodes.queryEntry(parent, name) : inodes.statEntry(parent, name)))
}

/** Opens the root of the topmost mount. Returns undefined if its server or daemon has ended, as `queryMountPoint` reports. */
export function openMountedRoot({ inodes }: Host, { parent, name }: MountPoint): Handle | undefined {
  return tolerateErrno([...BROKEN_MOUNT_ERRORS].join(' '), () => inodes.openEntry(parent, name))
}

/** Stats a mount point without waiting for a server or a daemon. Returns undefined if the name does not exist. */
export function statMountPointUnsynced(host: Host, point: MountPoint): Stat | 'broken' | undefined {
  return catchBrokenMount(() => host.inodes.statMountPoint(point.parent, point.name))
}

function catchBrokenMount(look: () => Stat): Stat | 'broken' | undefined {
  try {
    return look()
  } catch (error) {
    const code = getErrno(error) ?? ''
    if (code === 'ENOENT') return undefined
    if (BROKEN_MOUNT_ERRORS.has(code)) return 'broken'
    throw error
  }
}
