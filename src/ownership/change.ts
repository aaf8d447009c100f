import type { Handle, Inodes, Stat } from '../host/host.ts'
import { isRegular, isStripped, type Ownership, ownershipOf, SET_IDS, same } from './policy.ts'
import { sameBytes } from './record.ts'

export const CAPABILITY = 'security.capability'

/** `overtaken`: somebody changed the inode after it was seen, and it was left. */
export type Outcome = 'changed' | 'right' | 'overtaken'

/**
 * Brings a held inode to an ownership. The order is the kernel's: chown drops set-id bits and capabilities of files,
 * chmod puts the bits back, the attribute comes last. Nothing is called that would change nothing: even a chown to the
 * same group drops them and moves ctime.
 * @param seen what the inode was when the change was decided and recorded
 */
export function change(
  inodes: Inodes,
  handle: Handle,
  seen: Stat,
  want: Ownership,
  capability: Uint8Array | null,
): Outcome {
  const privileged = isRegular(seen) && ((want.mode & SET_IDS) !== 0 || capability !== null)
  const now = inodes.stat(handle)
  if (!same(ownershipOf(now), ownershipOf(seen)) || (privileged && now.changed !== seen.changed)) return 'overtaken'
  const regroup = now.gid !== want.gid
  if (regroup) inodes.chown(handle, want.gid)
  if (privileged) return privileges(inodes, handle, seen, want, capability) || regroup ? 'changed' : 'right'
  const { mode } = ownershipOf(now)
  if (mode === want.mode) return regroup ? 'changed' : 'right'
  // A directory. chmod(2) sets all bits, so what its users did until this moment would be undone.
  if (ownershipOf(inodes.stat(handle)).mode === mode) inodes.chmod(handle, want.mode)
  return 'changed'
}

/**
 * Gives set-id bits and the capability back to a file, for the content they belonged to: a write takes them away, and a
 * write that came in between must not get them.
 */
function privileges(
  inodes: Inodes,
  handle: Handle,
  seen: Stat,
  want: Ownership,
  capability: Uint8Array | null,
): boolean {
  const now = inodes.stat(handle)
  const { mode } = ownershipOf(now)
  const before = ownershipOf(seen).mode
  // Only what the chown itself took may be missing.
  if (!isSameContent(now, seen) || (mode !== before && !isStripped(mode, before))) return false
  const remode = mode !== want.mode
  if (remode) inodes.chmod(handle, want.mode)
  const recap = capability !== null && !sameBytes(inodes.getAttribute(handle, CAPABILITY) ?? null, capability)
  if (recap) inodes.setAttribute(handle, CAPABILITY, capability)
  if ((remode || recap) && !isSameContent(inodes.stat(handle), seen)) {
    inodes.chmod(handle, want.mode & ~SET_IDS)
    if (inodes.getAttribute(handle, CAPABILITY)) inodes.removeAttribute(handle, CAPABILITY)
  }
  return remode || recap
}

function isSameContent(a: Stat, b: Stat): boolean {
  return a.modified === b.modified && a.size === b.size
}
