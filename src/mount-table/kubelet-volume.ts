/** Only what kubelet made for a FlexVolume or a CSI volume is modekeep's to clear of mounts it has no record of. */
export function isKubeletVolume(directory: string): boolean {
  return /\/volumes\/([^/]+~[^/]+\/[^/]+|kubernetes\.io~csi\/[^/]+\/mount)$/.test(directory)
}

/** The same, and what kubelet has bound of such a one for a container's `subPath`. */
export function isPodsVolume(path: string): boolean {
  return isKubeletVolume(path) || /\/volume-subpaths\/[^/]+\/[^/]+\/\d+$/.test(path)
}
