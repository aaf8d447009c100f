export const FUSE_DEVICE = '/dev/fuse'

/** Read and write permission of other users. */
const OTHERS_ACCESS = 0o006

/**
 * Explains why only root can open the device. Containers get it with the node's mode, owned by root. The mode is checked,
 * because the plugin runs as root and can always open the device.
 * @returns undefined if every user can open it
 */
export function explainRootOnly(device: string, mode: number): string | undefined {
  if ((mode & OTHERS_ACCESS) === OTHERS_ACCESS) return undefined
  const shown = (mode & 0o7777).toString(8).padStart(4, '0')
  return `${device} has mode ${shown}, and containers get it so: a pod that is not root, or that has hostUsers: false, cannot open it`
}
