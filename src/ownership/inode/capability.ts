import type { Handle, Inodes } from '../../host/host.ts'

export const CAPABILITY = 'security.capability'

/** The file capability of a held inode as the kernel keeps it, null where there is none. */
export function capabilityOf(inodes: Inodes, handle: Handle): Uint8Array | null {
  return inodes.getAttribute(handle, CAPABILITY) ?? null
}
