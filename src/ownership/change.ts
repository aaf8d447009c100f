import type { Handle, Inodes } from '../host/host.ts'
import { type Ownership, SET_IDS } from './policy.ts'

export const CAPABILITY = 'security.capability'

/**
 * Brings a held inode from one ownership to another. The order is the kernel's: chown drops set-id bits and capabilities
 * of files, chmod puts the bits back, the attribute comes last. Nothing is called that would change nothing: even a chown
 * to the same group drops them and moves ctime.
 * @param now what the inode was seen to be through this handle
 * @returns whether anything had to be changed
 */
export function change(
  inodes: Inodes,
  handle: Handle,
  now: Ownership,
  want: Ownership,
  capability: Uint8Array | null,
): boolean {
  const regroup = now.gid !== want.gid
  if (regroup) inodes.chown(handle, want.gid)
  const remode = now.mode !== want.mode || (regroup && (want.mode & SET_IDS) !== 0)
  if (remode) inodes.chmod(handle, want.mode)
  const recap = capability !== null && !sameBytes(inodes.getAttribute(handle, CAPABILITY), capability)
  if (recap) inodes.setAttribute(handle, CAPABILITY, capability)
  return regroup || remode || recap
}

function sameBytes(a: Uint8Array | undefined, b: Uint8Array): boolean {
  return a !== undefined && Buffer.compare(a, b) === 0
}
