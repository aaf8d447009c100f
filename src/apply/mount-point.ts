import { basename, dirname } from 'node:path'
import { DIRECTORY, errorCode, FILE_TYPE, type Handle, type Host, type Name, REGULAR, type Stat } from '../host/host.ts'
import { layersAt, parseMountinfo } from '../mount-table/mountinfo.ts'
import type { MountedView, Target } from '../plan/view.ts'
import { Refusal, show } from '../protocol/refusal.ts'

/** What stat says of a mount whose server or daemon is gone (kubernetes mount-utils, IsCorruptedMnt). */
const BROKEN = new Set(['ENOTCONN', 'ESTALE', 'EIO', 'EACCES', 'EHOSTDOWN'])

/** Kubelet's directory, reached through its parent: kubelet's root may lie behind a link, the directory may be none. */
export interface MountPoint {
  parent: Handle
  name: Name
  /** The real path, whichever spelling was used: the key of locks and records. */
  path: string
}

/** Undefined when the parent does not exist, so nothing can be mounted. */
export function openMountPoint(host: Host, directory: string): MountPoint | undefined {
  try {
    const parent = host.inodes.openTrusted(dirname(directory))
    const above = host.inodes.pathOf(parent)
    const name = basename(directory)
    return { parent, name: Buffer.from(name), path: `${above === '/' ? '' : above}/${name}` }
  } catch (error) {
    if (errorCode(error) === 'ENOENT' || errorCode(error) === 'ENOTDIR') return undefined
    throw error
  }
}

export function missingMountPoint(path: string): Refusal {
  return new Refusal(`mount directory ${show(path)} does not exist: kubelet creates it before it calls mount`)
}

/**
 * What is mounted at the point.
 * @throws {Refusal} where there is no directory to mount on
 */
export function lookAt(
  host: Host,
  point: MountPoint,
  stat = askPoint(host, point),
): MountedView | 'broken' | undefined {
  if (stat === 'broken') return 'broken'
  if (stat === undefined) throw missingMountPoint(point.path)
  if (stat.mountRoot) {
    const { mountId, device, inode } = stat
    return { mountId: BigInt(mountId), device, inode, isDirectory: isDirectory(stat) }
  }
  targetOf(point, stat)
  return undefined
}

/**
 * What an unmounted point is.
 * @throws {Refusal} for what nobody made to mount on
 */
export function targetOf(point: MountPoint, stat: Stat | undefined): Target {
  if (stat === undefined) return 'missing'
  if (isDirectory(stat)) return 'directory'
  if (isEmptyFile(stat)) return 'file'
  throw new Refusal(`mount directory ${show(point.path)} is a link or a file: remove it, kubelet makes a new directory`)
}

/** What a volume that is no directory lies on. */
export function isEmptyFile({ mode, size, mountRoot }: Stat): boolean {
  return (mode & FILE_TYPE) === REGULAR && size === 0n && !mountRoot
}

function isDirectory({ mode }: Stat): boolean {
  return (mode & FILE_TYPE) === DIRECTORY
}

/** Asks what is mounted there, whose server or daemon may never answer: only for a call that is about this mount. */
export function askPoint(host: Host, point: MountPoint): Stat | 'broken' | undefined {
  return looked(() => host.inodes.statEntry(point.parent, point.name))
}

/** Undefined: the name does not exist. Does not wait for a server or a daemon. */
export function statPoint(host: Host, point: MountPoint): Stat | 'broken' | undefined {
  return looked(() => host.inodes.statMountPoint(point.parent, point.name))
}

function looked(look: () => Stat): Stat | 'broken' | undefined {
  try {
    return look()
  } catch (error) {
    const code = errorCode(error) ?? ''
    if (code === 'ENOENT') return undefined
    if (BROKEN.has(code)) return 'broken'
    throw error
  }
}

/** Removes every mount at the point. What still uses one keeps its view of it. */
export function detachAll(host: Host, point: MountPoint): void {
  for (let there = statPoint(host, point); there === 'broken' || there?.mountRoot; there = statPoint(host, point)) {
    try {
      host.mounts.detach(point.parent, point.name)
    } catch (error) {
      // A directory that cannot be looked at is not always a mount.
      if (there === 'broken' && errorCode(error) === 'EINVAL') return
      throw error
    }
  }
}

// As kubelet makes them: volumes (pkg/volume/flexvolume/util.go), and files for subPaths (pkg/volume/util/subpath).
const DIRECTORY_MODE = 0o750
const FILE_MODE = 0o640

/**
 * Makes the point an empty directory or an empty file. Only what is empty, or missing, gives way; a death in between
 * leaves it missing, which kubelet takes for unmounted and makes anew.
 * @throws {Refusal} for what nobody made to mount on
 */
export function setTarget(host: Host, point: MountPoint, wanted: 'directory' | 'file'): void {
  const { parent, name } = point
  const stat = statPoint(host, point)
  const there = stat === 'broken' ? 'directory' : targetOf(point, stat)
  if (there === wanted) return
  if (there === 'file') host.inodes.removeFile(parent, name)
  if (there === 'directory') removeEmptyDirectory(host, point)
  if (wanted === 'directory') host.inodes.createDirectory(parent, name, DIRECTORY_MODE)
  else host.inodes.createFile(parent, name, FILE_MODE)
}

function removeEmptyDirectory(host: Host, { parent, name, path }: MountPoint): void {
  try {
    host.inodes.removeDirectory(parent, name)
  } catch (error) {
    if (errorCode(error) !== 'ENOTEMPTY') throw error
    throw new Refusal(`mount directory ${show(path)} is not empty, so no file can take its place: empty it`)
  }
}

/**
 * Puts a detached tree in the place of all that is mounted at the point. With MOVE_MOUNT_BENEATH there is no moment
 * without a mount; an older kernel has a short one.
 */
export function replaceAt(host: Host, point: MountPoint, tree: Handle): void {
  const layers = layersAt(parseMountinfo(host.mounts.table()), point.path).length
  for (let left = layers; left > 1; left--) host.mounts.detach(point.parent, point.name)
  const old = host.inodes.openEntry(point.parent, point.name)
  try {
    if (layers > 0 && host.mounts.attachBeneath(tree, old)) host.mounts.detach(point.parent, point.name)
    else {
      detachAll(host, point)
      attachAt(host, point, tree)
    }
  } finally {
    host.inodes.close(old)
  }
}

export function attachAt(host: Host, point: MountPoint, tree: Handle): void {
  const target = host.inodes.openEntry(point.parent, point.name)
  try {
    host.mounts.attach(tree, target)
  } finally {
    host.inodes.close(target)
  }
}
