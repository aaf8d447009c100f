import type { Inodes, Stat } from '../host/host.ts'
import { CAPABILITY, capabilityOf } from './capability.ts'
import type { Held } from './held.ts'
import { isRegular, isStripped, type Ownership, ownershipOf, SET_IDS, same } from './policy.ts'
import { type InodeRecord, sameBytes } from './record.ts'

/** `overtaken`: somebody changed the inode after it was seen, and it was left. */
export type Outcome = 'changed' | 'right' | 'overtaken'

/**
 * Makes a recorded change of a held inode. The order is the kernel's: chown drops set-id bits and capabilities of files,
 * chmod puts the bits back, the attribute comes last. Nothing is called that would change nothing: even a chown to the
 * same group drops them and moves ctime.
 */
export function change(inodes: Inodes, held: Held, record: InodeRecord): Outcome {
  const { handle, stat } = held
  const { seen, after } = record
  const capability = record.forfeited ? null : record.capability
  const privileged = isRegular(stat) && ((after.mode & SET_IDS) !== 0 || capability !== null)
  const now = ownershipOf(inodes.stat(handle))
  if (!same(now, seen) || (privileged && !isSameFile(inodes, held))) return 'overtaken'
  const regroup = now.gid !== after.gid
  if (regroup) inodes.chown(handle, after.gid)
  if (privileged) return privileges(inodes, held, after, capability) || regroup ? 'changed' : 'right'
  if (now.mode === after.mode) return regroup ? 'changed' : 'right'
  // A directory. chmod(2) sets all bits, so what its users did until this moment would be undone.
  if (ownershipOf(inodes.stat(handle)).mode === now.mode) inodes.chmod(handle, after.mode)
  return 'changed'
}

function isSameFile(inodes: Inodes, { handle, stat, capability }: Held): boolean {
  return sameBytes(capabilityOf(inodes, handle), capability) && isSameContent(inodes.stat(handle), stat)
}

/**
 * Gives set-id bits and the capability back to a file, for the content they belonged to: a write takes them away, and a
 * write that came in between must not get them.
 */
function privileges(inodes: Inodes, held: Held, after: Ownership, capability: Uint8Array | null): boolean {
  const { handle, stat: seen } = held
  const now = inodes.stat(handle)
  const { mode } = ownershipOf(now)
  const before = ownershipOf(seen).mode
  // Only what the chown itself took may be missing.
  if (!isSameContent(now, seen) || (mode !== before && !isStripped(mode, before))) return false
  const remode = mode !== after.mode
  if (remode) inodes.chmod(handle, after.mode)
  const recap = capability !== null && !sameBytes(capabilityOf(inodes, handle), capability)
  if (recap) inodes.setAttribute(handle, CAPABILITY, capability)
  if ((remode || recap) && !isSameContent(inodes.stat(handle), seen)) {
    inodes.chmod(handle, after.mode & ~SET_IDS)
    if (capabilityOf(inodes, handle)) inodes.removeAttribute(handle, CAPABILITY)
  }
  return remode || recap
}

function isSameContent(a: Stat, b: Stat): boolean {
  return a.modified === b.modified && a.size === b.size
}
