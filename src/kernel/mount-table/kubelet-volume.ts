import { dirname } from 'node:path'
import type { Host } from '../host.ts'
import { tolerateSystemErrors } from '../system-error.ts'
import { type MountRow, parseMountinfo } from './mountinfo.ts'
import { createLocationFinder } from './tree-location.ts'

/** The name of the CSI driver in a pod's volume and in the CSIDriver object. Kubelet's directory for it has the same name. */
export const CSI_DRIVER_NAME = 'modekeep.csi'

/** The directory of kubelet's CSI plugin below a pod's volumes. */
export const CSI_PLUGIN_DIRECTORY = 'kubernetes.io~csi'

const POD_VOLUME_PATTERN = /\/pods\/[^/]+\/volumes\/(modekeep~fs\/[^/]+|kubernetes\.io~csi\/[^/]+\/mount)$/

/**
 * Checks whether kubelet created a directory for a FlexVolume or a CSI volume. Only from those does modekeep remove mounts that
 * it has no record of.
 */
export function isKubeletVolume(directory: string): boolean {
  return /\/volumes\/([^/]+~[^/]+\/[^/]+|kubernetes\.io~csi\/[^/]+\/mount)$/.test(directory)
}

/** Checks whether a directory is the target at which a CSI driver publishes a pod's volume. */
export const isCsiVolume = (directory: string): boolean =>
  /\/volumes\/kubernetes\.io~csi\/[^/]+\/mount$/.test(directory)

/** Checks whether a path is a volume directory of kubelet, or the bind mount of its part for a container's `subPath`. */
export function isKubeletMountPath(path: string): boolean {
  return isKubeletVolume(path) || /\/volume-subpaths\/[^/]+\/[^/]+\/\d+$/.test(path)
}

/**
 * Returns the name of the volume whose part kubelet has bound for a container's `subPath`. The path consists of volume,
 * container and index (kubernetes pkg/volume/util/subpath).
 * @param below a path below the pod's directory, with its slash
 */
export function parseSubPathVolume(below: string): string | undefined {
  return /^\/volume-subpaths\/([^/]+)\/[^/]+\/\d+$/.exec(below)?.[1]
}

/**
 * Returns the part of a path from `/pods` on if the volume may be this driver's. That part identifies the volume at
 * every path of kubelet's directory, because the UID of a pod is unique. Returns undefined for other directories.
 */
export function parsePodVolume(directory: string): string | undefined {
  return POD_VOLUME_PATTERN.exec(directory)?.[0]
}

/**
 * Checks whether kubelet created the directory for a volume of this driver. Kubelet writes the driver's name next to a CSI
 * volume (kubernetes pkg/volume/csi/csi_attacher.go, vol_data.json). A CSI driver with another name is not recognised.
 */
export function isModekeepVolumeDirectory({ files }: Host, directory: string): boolean {
  const [, volume] = POD_VOLUME_PATTERN.exec(directory) ?? []
  if (!volume?.startsWith(`${CSI_PLUGIN_DIRECTORY}/`)) return volume !== undefined
  const note = tolerateSystemErrors(() => files.readForeign(`${dirname(directory)}/${CSI_VOLUME_DATA_FILE}`)) ?? ''
  return parseCsiDriverName(note) === CSI_DRIVER_NAME
}

/** Formats the path at which kubelet mounts a volume: one directory deeper for CSI. @param pod the pod's directory */
export const formatVolumeDirectory = (pod: string, plugin: string, volume: string): string =>
  `${pod}/volumes/${plugin}/${volume}${plugin === CSI_PLUGIN_DIRECTORY ? '/mount' : ''}`

/** The name of the file that kubelet writes next to a CSI volume. */
export const CSI_VOLUME_DATA_FILE = 'vol_data.json'

/** Returns the driver's name in the text of that file. */
export function parseCsiDriverName(note: string): string | undefined {
  return /"driverName"\s*:\s*"([^"]*)"/.exec(note)?.[1]
}

/** Returns kubelet's root directory and the pod's UID from the path of a volume directory. */
export function parseVolumePod(directory: string): { root: string; uid: string } | undefined {
  const [, root, uid] = (isKubeletVolume(directory) && /^(.*)\/pods\/([^/]+)\/volumes\//.exec(directory)) || []
  return root === undefined || uid === undefined ? undefined : { root, uid }
}

/** Returns the pod's directory that contains a volume directory of kubelet. */
export function findPodDirectory(directory: string): string | undefined {
  const kubeletPod = parseVolumePod(directory)
  return kubeletPod && `${kubeletPod.root}/pods/${kubeletPod.uid}`
}

/**
 * Checks whether the pod of a volume directory has a user namespace (`hostUsers: false`). Kubelet records that only after it
 * has requested the pod's volumes (kubernetes pkg/kubelet/userns/userns_manager.go), so the first call returns false.
 */
export function hasPodUserNamespace({ files }: Host, directory: string): boolean {
  const pod = findPodDirectory(directory)
  return pod !== undefined && files.read(`${pod}/userns`) !== undefined
}

/** A bind mount that kubelet made for a `subPath` of a ConfigMap, Secret, projected or downward API volume. */
export interface KubeletSubPath {
  row: MountRow
  /** The directory that kubelet's atomic writer writes. */
  volumeDirectory: string
  /** The bound path inside the volume directory, as its user sees it: `config`, `dir/config`, or `..data` for all of it. */
  subPath: string
  /** True if an atomic update has deleted its source. */
  stale: boolean
  /** The reason for which a stale bind mount must be skipped. */
  doubt: string | undefined
}

/** The plugins whose volumes kubelet's atomic writer writes, as directory names below `pods/UID/volumes`. */
export const ATOMIC_WRITER_PLUGINS: readonly string[] = ['configmap', 'secret', 'projected', 'downward-api'].map(
  (plugin) => `kubernetes.io~${plugin}`,
)

// The groups and wildcards match the pod's UID, the volume, the container and the index.
const SUB_PATH_BIND_PATTERN = /^\/pods\/([^/]+)\/volume-subpaths\/([^/]+)\/[^/]+\/\d+$/
// The path consists of the volume, its dated directory and the rest. Go's os.MkdirTemp adds the digits after the seconds.
const DATED_VOLUME_ROOT_PATTERN = /^((?:\/.+)?)\/\.\.\d{4}_\d\d_\d\d_\d\d_\d\d_\d\d\.\d+(?:\/(.+))?$/
/** The suffix with which mountinfo marks a mount whose root was deleted. */
export const DELETED_ROOT_SUFFIX = '//deleted'
const DATA_LINK_NAME = '..data'

/** Creates a function that reports another mount at the mount point of a bind: only a single, visible mount can be replaced. */
export function createCoveringMountFinder(
  rows: readonly MountRow[],
  findLocation: ReturnType<typeof createLocationFinder>,
): (row: MountRow) => string | undefined {
  let byMountPoint: Map<string, MountRow[]> | undefined
  return (row) => {
    const shown = findLocation(row.mountPoint)
    const isHidden = shown?.device !== row.device || shown.path !== row.root
    byMountPoint ??= Map.groupBy(rows, ({ mountPoint }) => mountPoint)
    return isHidden || (byMountPoint.get(row.mountPoint)?.length ?? 0) > 1
      ? 'another mount is over or under it'
      : undefined
  }
}

/**
 * Finds kubelet's subPath binds whose source lies in a dated directory of the volume that their path names. That volume is on
 * the file system of kubelet's directory, or a tmpfs mounted at the volume directory. All other mounts are skipped.
 * @param kubeletDir kubelet's root directory, as mountinfo writes it: absolute, without links
 */
export function parseKubeletSubPaths(table: string | readonly MountRow[], kubeletDir: string): KubeletSubPath[] {
  const rows = typeof table === 'string' ? parseMountinfo(table) : table
  const mountPoints = new Set(rows.map(({ mountPoint }) => mountPoint))
  const findLocation = createLocationFinder(rows)
  const findCover = createCoveringMountFinder(rows, findLocation)

  /** Called for stale binds only: on a node with thousands of mounts, finding a location takes long. */
  function findDoubt(row: MountRow, volumeDirectory: string, volumeRoot: string): string | undefined {
    const volume = findLocation(volumeDirectory)
    if (volume?.device !== row.device || volume.path !== volumeRoot) return 'its volume directory is another one now'
    return findCover(row)
  }

  return rows.flatMap((row): KubeletSubPath[] => {
    if (!row.mountPoint.startsWith(`${kubeletDir}/pods/`)) return []
    const [, pod, volume] = SUB_PATH_BIND_PATTERN.exec(row.mountPoint.slice(kubeletDir.length)) ?? []
    const stale = row.root.endsWith(DELETED_ROOT_SUFFIX)
    const [, volumeRoot, subPath] =
      DATED_VOLUME_ROOT_PATTERN.exec(stale ? row.root.slice(0, -DELETED_ROOT_SUFFIX.length) : row.root) ?? []
    if (pod === undefined || volume === undefined || volumeRoot === undefined) return []
    const inKubeletDir = ATOMIC_WRITER_PLUGINS.map((plugin) => `/pods/${pod}/volumes/${plugin}/${volume}`).find(
      (path) => (volumeRoot === '' ? mountPoints.has(`${kubeletDir}${path}`) : volumeRoot.endsWith(path)),
    )
    if (inKubeletDir === undefined) return []
    const volumeDirectory = `${kubeletDir}${inKubeletDir}`
    const doubt = stale ? findDoubt(row, volumeDirectory, volumeRoot) : undefined
    return [{ row, volumeDirectory, subPath: subPath ?? DATA_LINK_NAME, stale, doubt }]
  })
}
