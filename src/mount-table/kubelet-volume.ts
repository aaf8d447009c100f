import { dirname } from 'node:path'
import { unlessRefused } from '../host/file-error.ts'
import type { Host } from '../host/host.ts'

/** Of the CSI driver, in a pod's volume and the CSIDriver object; kubelet's directory for it has the same name. */
export const CSI_DRIVER = 'modekeep.csi'

/** The directory of kubelet's plugin for CSI, below that of a pod's volumes. */
export const CSI_PLUGIN = 'kubernetes.io~csi'

const POD_VOLUME = /\/pods\/[^/]+\/volumes\/(modekeep~fs\/[^/]+|kubernetes\.io~csi\/[^/]+\/mount)$/

/** Only what kubelet made for a FlexVolume or a CSI volume is modekeep's to clear of mounts it has no record of. */
export function isKubeletVolume(directory: string): boolean {
  return /\/volumes\/([^/]+~[^/]+\/[^/]+|kubernetes\.io~csi\/[^/]+\/mount)$/.test(directory)
}

/** Whether a directory is where kubelet has a CSI driver publish a volume of a pod. */
export const isCsiVolume = (directory: string): boolean =>
  /\/volumes\/kubernetes\.io~csi\/[^/]+\/mount$/.test(directory)

/** The same, and what kubelet has bound of such a one for a container's `subPath`. */
export function isKubeletMountPath(path: string): boolean {
  return isKubeletVolume(path) || /\/volume-subpaths\/[^/]+\/[^/]+\/\d+$/.test(path)
}

/**
 * The volume of which kubelet has bound a part for a container's `subPath` (kubernetes pkg/volume/util/subpath): volume,
 * container, index.
 * @param below a path below the pod's directory, with its slash
 */
export function parseSubPathVolume(below: string): string | undefined {
  return /^\/volume-subpaths\/([^/]+)\/[^/]+\/\d+$/.exec(below)?.[1]
}

/**
 * Names a pod's volume that may be this driver's, wherever kubelet's directory shows: a pod's uid is nobody else's.
 * Undefined for other directories.
 */
export function parsePodVolume(directory: string): string | undefined {
  return POD_VOLUME.exec(directory)?.[0]
}

/**
 * Whether kubelet made the directory for a volume of this driver. For one of CSI, kubelet writes the driver's name beside
 * it (kubernetes pkg/volume/csi/csi_attacher.go, vol_data.json); one by another name than the usual is not known.
 */
export function isOwnVolume({ files }: Host, directory: string): boolean {
  const [, volume] = POD_VOLUME.exec(directory) ?? []
  if (!volume?.startsWith(`${CSI_PLUGIN}/`)) return volume !== undefined
  const note = unlessRefused(() => files.readForeign(`${dirname(directory)}/${CSI_VOLUME_DATA}`)) ?? ''
  return parseDriverName(note) === CSI_DRIVER
}

/** Where kubelet has a volume of this name mounted: a CSI driver's one directory deeper. @param pod the pod's directory */
export const formatVolumeDirectory = (pod: string, plugin: string, volume: string): string =>
  `${pod}/volumes/${plugin}/${volume}${plugin === CSI_PLUGIN ? '/mount' : ''}`

/** What kubelet writes beside a CSI volume. */
export const CSI_VOLUME_DATA = 'vol_data.json'

/** The driver that such a text names. */
export function parseDriverName(note: string): string | undefined {
  return /"driverName"\s*:\s*"([^"]*)"/.exec(note)?.[1]
}

/** Kubelet's root directory, and the uid of the pod that a volume directory of kubelet's is in. */
export function parseVolumePod(directory: string): { root: string; uid: string } | undefined {
  const [, root, uid] = (isKubeletVolume(directory) && /^(.*)\/pods\/([^/]+)\/volumes\//.exec(directory)) || []
  return root === undefined || uid === undefined ? undefined : { root, uid }
}

/** The directory of the pod that a volume directory of kubelet's is in. */
export function findPodDirectory(directory: string): string | undefined {
  const kubeletPod = parseVolumePod(directory)
  return kubeletPod && `${kubeletPod.root}/pods/${kubeletPod.uid}`
}

/**
 * Whether the pod of a volume directory has a user namespace (`hostUsers: false`). Kubelet writes that down just after it
 * has called for the pod's volumes (kubernetes pkg/kubelet/userns/userns_manager.go): a first call cannot know.
 */
export function hasUserNamespace({ files }: Host, directory: string): boolean {
  const pod = findPodDirectory(directory)
  return pod !== undefined && files.read(`${pod}/userns`) !== undefined
}
