import { BLOCK_DEVICE, CHARACTER_DEVICE, DIRECTORY, FILE_TYPE, REGULAR, type Stat, SYMLINK } from '../host/host.ts'

/** What a walk may change of an inode. Owner and times are never touched. */
export interface Ownership {
  gid: number
  /** Permission bits with set-uid, set-gid and sticky; no type bits. */
  mode: number
}

export const PERMISSIONS = 0o7777
const GRANTED = 0o0660
const GRANTED_DIRECTORY = 0o0770
export const SET_IDS = 0o6000
const SET_UID = 0o4000
const SET_GID = 0o2000

/** The group that is given, and what it may do: `grant` adds kubelet's permission bits, `keep` none. */
export interface Target {
  group: number
  access: 'keep' | 'grant'
}

export type Verdict = { leave: 'symlink' | 'device' } | { want: Ownership }

/**
 * The group everywhere, and set-gid on directories so that new files inherit it.
 * A link has no access of its own, and a device node's group opens hardware: both are left.
 */
export function verdict(stat: Stat, { group, access }: Target): Verdict {
  switch (stat.mode & FILE_TYPE) {
    case SYMLINK:
      return { leave: 'symlink' }
    case BLOCK_DEVICE:
    case CHARACTER_DEVICE:
      return { leave: 'device' }
    case DIRECTORY:
      return {
        want: { gid: group, mode: (stat.mode & PERMISSIONS) | SET_GID | (access === 'grant' ? GRANTED_DIRECTORY : 0) },
      }
    default:
      return { want: { gid: group, mode: (stat.mode & PERMISSIONS) | (access === 'grant' ? GRANTED : 0) } }
  }
}

export function ownershipOf(stat: Stat): Ownership {
  return { gid: stat.gid, mode: stat.mode & PERMISSIONS }
}

export function same(a: Ownership, b: Ownership): boolean {
  return a.gid === b.gid && a.mode === b.mode
}

/** Kubernetes' OnRootMismatch: the root shows what a finished walk leaves, since the root is changed last. */
export function rootMatches(root: Stat, target: Target): boolean {
  const decided = verdict(root, target)
  return 'want' in decided && same(decided.want, ownershipOf(root))
}

/** Whether `now` is `mode` after a chown: set-gid stays where the group may not execute (Linux, setattr_should_drop_sgid). */
export function isStripped(now: number, mode: number): boolean {
  return now !== mode && (now === (mode & ~SET_IDS) || now === (mode & ~SET_UID))
}

/** Only regular files lose set-uid, set-gid and capabilities to a chown (chown(2)). */
export function isRegular(stat: Stat): boolean {
  return (stat.mode & FILE_TYPE) === REGULAR
}
