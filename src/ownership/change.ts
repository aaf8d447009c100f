import type { Handle, Inodes } from '../host/host.ts'
import { type Ownership, ownershipOf } from './policy.ts'

export const CAPABILITY = 'security.capability'

/**
 * Brings a held inode to an ownership. The order is the kernel's: chown drops set-id bits and capabilities of files,
 * chmod puts the bits back, the attribute comes last. Nothing is called that would change nothing: even a chown to the
 * same group drops them and moves ctime.
 * @returns whether anything had to be changed
 */
export function change(inodes: Inodes, handle: Handle, want: Ownership, capability: Uint8Array | null): boolean {
  const before = inodes.stat(handle)
  const regroup = before.gid !== want.gid
  if (regroup) inodes.chown(handle, before.uid, want.gid)
  const remode = ownershipOf(regroup ? inodes.stat(handle) : before).mode !== want.mode
  if (remode) inodes.chmod(handle, want.mode)
  const recap = capability !== null && !sameBytes(inodes.getAttribute(handle, CAPABILITY), capability)
  if (recap) inodes.setAttribute(handle, CAPABILITY, capability)
  return regroup || remode || recap
}

function sameBytes(a: Uint8Array | undefined, b: Uint8Array): boolean {
  return a !== undefined && Buffer.compare(a, b) === 0
}
