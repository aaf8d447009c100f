import { dirname } from 'node:path'
import { tolerateSystemErrors } from '../host/file-error.ts'
import type { Host } from '../host/host.ts'

/** The name of the CSI driver in a pod's volume and in the CSIDriver object. Kubelet's directory for it has the same name. */
export const CSI_DRIVER = 'modekeep.csi'

/** The directory of kubelet's CSI plugin below a pod's volumes. */
export const CSI_PLUGIN = 'kubernetes.io~csi'

const POD_VOLUME = /\/pods\/[^/]+\/volumes\/(modekeep~fs\/[^/]+|kubernetes\.io~csi\/[^/]+\/mount)$/

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
  return POD_VOLUME.exec(directory)?.[0]
}

/**
 * Checks whether kubelet created the directory for a volume of this driver. Kubelet writes the driver's name next to a CSI
 * volume (kubernetes pkg/volume/csi/csi_attacher.go, vol_data.json). A CSI driver with another name is not recognised.
 */
export function isOwnVolume({ files }: Host, directory: string): boolean {
  const [, volume] = POD_VOLUME.exec(directory) ?? []
  if (!volume?.startsWith(`${CSI_PLUGIN}/`)) return volume !== undefined
  const note = tolerateSystemErrors(() => files.readForeign(`${dirname(directory)}/${CSI_VOLUME_DATA}`)) ?? ''
  return parseDriverName(note) === CSI_DRIVER
}

/** Formats the path at which kubelet mounts a volume: one directory deeper for CSI. @param pod the pod's directory */
export const formatVolumeDirectory = (pod: string, plugin: string, volume: string): string =>
  `${pod}/volumes/${plugin}/${volume}${plugin === CSI_PLUGIN ? '/mount' : ''}`

/** The name of the file that kubelet writes next to a CSI volume. */
export const CSI_VOLUME_DATA = 'vol_data.json'

/** Returns the driver's name in the text of that file. */
export function parseDriverName(note: string): string | undefined {
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
export function hasUserNamespace({ files }: Host, directory: string): boolean {
  const pod = findPodDirectory(directory)
  return pod !== undefined && files.read(`${pod}/userns`) !== undefined
}
