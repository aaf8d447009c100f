import { basename, dirname } from 'node:path'
import {
  closing,
  errorCode,
  FILE_TYPE,
  type Handle,
  type Host,
  isDirectory,
  type Name,
  REGULAR,
  type Stat,
} from '../host/host.ts'
import { quoted, Refusal } from '../refusal/refusal.ts'
import { isGuard } from './layers.ts'

/** What stat says of a mount whose server or daemon is gone (kubernetes mount-utils, IsCorruptedMnt). */
const BROKEN = new Set(['ENOTCONN', 'ESTALE', 'EIO', 'EACCES', 'EHOSTDOWN'])

/** The topmost mount at the mount directory and the root inode it shows. */
export interface MountedView {
  mountId: bigint
  device: number
  inode: bigint
  isDirectory: boolean
}

/** What there is to mount on: kubelet makes a directory, and a volume that is none needs a file. */
export type MountTarget = 'directory' | 'file' | 'missing'

/** Kubelet's directory, reached through its parent: kubelet's root may lie behind a link, the directory may be none. */
export interface MountPoint {
  parent: Handle
  name: Name
  /** The real path, whichever spelling was used: the key of locks and records. */
  path: string
}

/** Undefined when the parent does not exist, so nothing can be mounted. */
export function openMountPoint({ inodes }: Host, directory: string): (MountPoint & Disposable) | undefined {
  try {
    const parent = inodes.openTrusted(dirname(directory))
    const above = inodes.pathOf(parent)
    const name = basename(directory)
    const path = `${above === '/' ? '' : above}/${name}`
    return { parent, name: Buffer.from(name), path, ...closing(inodes, parent) }
  } catch (error) {
    if (errorCode(error) === 'ENOENT' || errorCode(error) === 'ENOTDIR') return undefined
    throw error
  }
}

export function isMounted(stat: Stat | 'broken' | undefined): boolean {
  return stat === 'broken' || stat?.mountRoot === true
}

export function createMissingMountPointRefusal(path: string): Refusal {
  return new Refusal(`mount directory ${quoted(path)} does not exist: kubelet creates it before it calls mount`)
}

/** What is mounted at a point, and what it is where nothing is. */
export interface MountPointState {
  /** The topmost mount; 'broken' where even asking fails (a dead FUSE daemon, a stale NFS handle). */
  mounted: MountedView | 'broken' | undefined
  /** Where nothing is mounted; below a mount it is of the mounted root's type. */
  target: MountTarget
}

/** What a look at the point has told. @throws {Refusal} where there is what nobody made to mount on */
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

/** What an unmounted point is. @throws {Refusal} for what nobody made to mount on */
export function classifyTarget(point: MountPoint, stat: Stat | undefined): MountTarget {
  if (stat === undefined) return 'missing'
  if (isDirectory(stat)) return 'directory'
  if (isEmptyFile(stat)) return 'file'
  throw new Refusal(
    `mount directory ${quoted(point.path)} is a link or a file: remove it, kubelet makes a new directory`,
  )
}

/** What a volume that is no directory lies on. */
export function isEmptyFile(stat: Stat): boolean {
  return (stat.mode & FILE_TYPE) === REGULAR && stat.size === 0n && !stat.mountRoot
}

/**
 * Asks what is mounted there, whose server or daemon may never answer: only for a call that is about this mount.
 * @param isDead its daemon seems to be: what the kernel has cached is no answer
 */
export function queryPoint(
  { inodes }: Host,
  { parent, name }: MountPoint,
  isDead: boolean,
): Stat | 'broken' | undefined {
  return catchBroken(() => (isDead ? inodes.askEntry(parent, name) : inodes.statEntry(parent, name)))
}

/** Undefined: the name does not exist. Does not wait for a server or a daemon. */
export function statPoint(host: Host, point: MountPoint): Stat | 'broken' | undefined {
  return catchBroken(() => host.inodes.statMountPoint(point.parent, point.name))
}

function catchBroken(look: () => Stat): Stat | 'broken' | undefined {
  try {
    return look()
  } catch (error) {
    const code = errorCode(error) ?? ''
    if (code === 'ENOENT') return undefined
    if (BROKEN.has(code)) return 'broken'
    throw error
  }
}
