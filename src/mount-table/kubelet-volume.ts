import type { Host } from '../host/host.ts'

/** Only what kubelet made for a FlexVolume or a CSI volume is modekeep's to clear of mounts it has no record of. */
export function isKubeletVolume(directory: string): boolean {
  return /\/volumes\/([^/]+~[^/]+\/[^/]+|kubernetes\.io~csi\/[^/]+\/mount)$/.test(directory)
}

/** The same, and what kubelet has bound of such a one for a container's `subPath`. */
export function isPodsVolume(path: string): boolean {
  return isKubeletVolume(path) || /\/volume-subpaths\/[^/]+\/[^/]+\/\d+$/.test(path)
}

/** The directory of the pod that a volume directory of kubelet's is in. */
export function podDirectoryOf(directory: string): string | undefined {
  return isKubeletVolume(directory) ? /^(.*\/pods\/[^/]+)\/volumes\//.exec(directory)?.[1] : undefined
}

/**
 * Whether the pod of a volume directory has a user namespace (`hostUsers: false`). Kubelet writes that down just after it
 * has called for the pod's volumes (kubernetes pkg/kubelet/userns/userns_manager.go): a first call cannot know.
 */
export function hasUserNamespace({ files }: Host, directory: string): boolean {
  const pod = podDirectoryOf(directory)
  return pod !== undefined && files.read(`${pod}/userns`) !== undefined
}
