import { basename, dirname } from 'node:path'
import { quoteValue } from '../errors/refusal.ts'
import { getErrno, type Host, isDirectory } from '../kernel/host.ts'
import {
  CSI_PLUGIN_DIRECTORY,
  CSI_VOLUME_DATA_FILE,
  findPodDirectory,
  formatVolumeDirectory,
} from '../kernel/mount-table/kubelet-volume.ts'
import {
  isEmptyFile,
  isMounted,
  type MountPoint,
  openMountPoint,
  statMountPointUnsynced,
} from '../kernel/mount-table/mount-point.ts'
import { createLocationFinder, resolveRelativePath } from '../kernel/mount-table/tree-location.ts'
import { detachAllMounts } from './attach.ts'

/**
 * Unmounts kubelet's binds of a volume for containers' `subPath`, and removes their directories. Kubelet does that before
 * it calls the volume's unmount (kubernetes pkg/volume/util/subpath, doCleanSubPaths). A container keeps its own mount.
 * @param directory the volume's mount directory, without links
 * @returns the leftovers with the reason, one clause each: they keep kubelet from removing the pod's directory
 */
export function unmountSubPathBinds(host: Host, directory: string): string[] {
  return findOrUnmountSubPathBinds(host, directory, true)
}

/** Finds the binds that `unmountSubPathBinds` would unmount. Changes nothing. */
export function findSubPathBinds(host: Host, directory: string): string[] {
  return findOrUnmountSubPathBinds(host, directory, false)
}

/** Removes kubelet's file next to the CSI volume of a deleted pod: kubelet removes no file from there. */
export function removeCsiData(host: Host, directory: string): void {
  if (isCsiVolumeDirectory(directory)) host.files.remove(`${dirname(directory)}/${CSI_VOLUME_DATA_FILE}`)
}

/**
 * Removes the directory of an unmounted volume of a deleted pod. Only empty directories are removed.
 * @returns the leftovers, like `unmountSubPathBinds`
 */
export function removeEmptyDirectories(host: Host, { path }: MountPoint): string[] {
  const left = removeDirectoryIfEmpty(host, path)
  return left.length > 0 || !isCsiVolumeDirectory(path) ? left : removeDirectoryIfEmpty(host, dirname(path))
}

const isCsiVolumeDirectory = (directory: string) => basename(dirname(dirname(directory))) === CSI_PLUGIN_DIRECTORY

/** Lists the reasons why kubelet cannot remove the directory of an unmounted volume. Changes nothing. */
export function findVolumeLeftovers(host: Host, path: string): string[] {
  return listKubeletDirectory(host, path).length > 0 ? [formatNotEmptyReason(path)] : []
}

function findOrUnmountSubPathBinds(host: Host, directory: string, isEnding: boolean): string[] {
  const pod = findPodDirectory(directory)
  if (pod === undefined) return []
  const [plugin = '', volume = ''] = directory.slice(`${pod}/volumes/`.length).split('/')
  const top = `${pod}/volume-subpaths/${volume}`
  const containers = listKubeletDirectory(host, top)
  if (containers.length === 0) return isEnding ? removeDirectoryIfEmpty(host, top) : []
  const isOfOther = createOtherVolumeBindCheck(host, pod, { plugin, volume })
  let hasOthers = false
  const left = containers.flatMap((container) => {
    const above = `${top}/${container}`
    const paths = listKubeletDirectory(host, above).map((index) => `${above}/${index}`)
    const ours = paths.filter((path) => !isOfOther(path))
    const isShared = ours.length < paths.length
    hasOthers ||= isShared
    const kept = ours.flatMap((path) => (isEnding ? unmountSubPathBind(host, path) : findSubPathBind(host, path)))
    return kept.length > 0 || !isEnding || isShared ? kept : removeDirectoryIfEmpty(host, above)
  })
  if (left.length > 0 || !isEnding || hasOthers) return left
  const kept = removeDirectoryIfEmpty(host, top)
  // The parent directory also contains the binds of the pod's other volumes.
  if (kept.length === 0) removeDirectoryIfEmpty(host, dirname(top))
  return kept
}

/** Lists a directory of kubelet's. Returns no name if it is a mount point or not a directory. */
function listKubeletDirectory(host: Host, path: string): string[] {
  using point = openMountPoint(host, path)
  const stat = point && statMountPointUnsynced(host, point)
  if (stat === undefined || stat === 'broken' || stat.mountRoot || !isDirectory(stat)) return []
  return host.files.list(path)
}

/**
 * Kubelet names the binds of a PersistentVolume after that, and those of other volumes after their names in the pod. Two
 * volumes can therefore share a directory of binds.
 * @returns whether a bind shows the other volume
 */
function createOtherVolumeBindCheck(
  host: Host,
  pod: string,
  { plugin, volume }: { plugin: string; volume: string },
): (path: string) => boolean {
  const others = listKubeletDirectory(host, `${pod}/volumes`)
    .filter((name) => name !== plugin)
    .map((name) => formatVolumeDirectory(pod, name, volume))
    .filter((path) => host.files.has(path))
  if (others.length === 0) return () => false
  const resolveLocation = createLocationFinder(host.mounts.table())
  const roots = others.flatMap((path) => resolveLocation(path) ?? [])
  return (path) => {
    using point = openMountPoint(host, path)
    const shown = point && isMounted(statMountPointUnsynced(host, point)) ? resolveLocation(path) : undefined
    return shown !== undefined && roots.some((root) => resolveRelativePath(root, shown) !== undefined)
  }
}

function unmountSubPathBind(host: Host, path: string): string[] {
  using point = openMountPoint(host, path)
  if (point === undefined) return []
  if (!/\/\d+$/.test(path)) return [`${quoteValue(path)} is not kubelet's`]
  try {
    detachAllMounts(host, point)
    const stat = statMountPointUnsynced(host, point)
    if (stat !== undefined && stat !== 'broken' && isEmptyFile(stat)) host.inodes.removeFile(point.parent, point.name)
    else return removeDirectoryIfEmpty(host, path)
  } catch (error) {
    const code = getErrno(error)
    if (code === undefined) throw error
    return [`${quoteValue(path)} cannot be unmounted (${code})`]
  }
  return []
}

function findSubPathBind(host: Host, path: string): string[] {
  using point = openMountPoint(host, path)
  if (point === undefined) return []
  const stat = statMountPointUnsynced(host, point)
  if (isMounted(stat)) return [`${quoteValue(path)} is mounted`]
  return stat === undefined ? [] : [`${quoteValue(path)} is not removed`]
}

function removeDirectoryIfEmpty(host: Host, path: string): string[] {
  using point = openMountPoint(host, path)
  if (point === undefined) return []
  try {
    host.inodes.removeDirectory(point.parent, point.name)
  } catch (error) {
    const code = getErrno(error)
    if (code === undefined) throw error
    if (code === 'ENOENT') return []
    return [code === 'ENOTEMPTY' ? formatNotEmptyReason(path) : `${quoteValue(path)} cannot be removed (${code})`]
  }
  return []
}

const formatNotEmptyReason = (path: string) => `${quoteValue(path)} is not empty`
