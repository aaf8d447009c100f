/** Where the node has it. */
export const FUSE_DEVICE = '/dev/fuse'

/** Read and write, for those that are neither its owner nor of its group. */
const OTHERS_ACCESS = 0o006

/**
 * Containers get the device with the node's mode, and the runtime makes it root's. Only an open by another user would
 * tell for sure: the plugin's own is root's.
 * @returns why not every pod can open it
 */
export function explainRootOnly(device: string, mode: number): string | undefined {
  if ((mode & OTHERS_ACCESS) === OTHERS_ACCESS) return undefined
  const shown = (mode & 0o7777).toString(8).padStart(4, '0')
  return `${device} has mode ${shown}, and containers get it so: a pod that is not root, or that has hostUsers: false, cannot open it`
}
