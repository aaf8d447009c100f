import { BLOCK_DEVICE, CHARACTER_DEVICE, DIRECTORY, FILE_TYPE, REGULAR, type Stat, SYMLINK } from '../../host/host.ts'

/** What a walk may change of an inode. Owner and times are never touched. */
export interface Ownership {
  gid: number
  /** Permission bits with set-uid, set-gid and sticky; no type bits. */
  mode: number
}

export const PERMISSIONS = 0o7777
export const SET_IDS = 0o6000
const SET_UID = 0o4000
export const SET_GID = 0o2000

/** groupAccess: `keep` adds no permission bit, `grant` gives the group what kubelet's own rule gives it. */
export interface OwnOrder {
  group: number
  access: 'keep' | 'grant'
}

/** Kubelet's masks (SetVolumeOwnership, pkg/volume/volume_linux.go): rw for files, rwx and set-gid for directories. */
const GRANTED_FILE = 0o660
const GRANTED_DIRECTORY = 0o770

export type Verdict = { leave: 'symlink' | 'device' } | { want: Ownership }

/**
 * The group everywhere, set-gid on directories so that new files inherit it, and with `grant` the group's bits.
 * A link has no access of its own, and a device node's group opens hardware: both are left.
 */
export function verdict(stat: Pick<Stat, 'mode'>, order: OwnOrder): Verdict {
  const leave = leaves(stat)
  return leave ? { leave } : { want: { gid: order.group, mode: wantedMode(stat, order) } }
}

function leaves({ mode }: Pick<Stat, 'mode'>): 'symlink' | 'device' | undefined {
  const type = mode & FILE_TYPE
  if (type === SYMLINK) return 'symlink'
  return type === BLOCK_DEVICE || type === CHARACTER_DEVICE ? 'device' : undefined
}

function wantedMode({ mode }: Pick<Stat, 'mode'>, { access }: OwnOrder): number {
  const bits = mode & PERMISSIONS
  if ((mode & FILE_TYPE) === DIRECTORY) return bits | SET_GID | (access === 'grant' ? GRANTED_DIRECTORY : 0)
  return access === 'grant' ? bits | GRANTED_FILE : bits
}

/** The verdict on an inode as it is, for every inode of a volume: what is right already makes no object. */
export function isRight(stat: Stat, order: OwnOrder): boolean | { leave: 'symlink' | 'device' } {
  const leave = leaves(stat)
  if (leave) return { leave }
  return stat.gid === order.group && (stat.mode & PERMISSIONS) === wantedMode(stat, order)
}

export function ownershipOf(stat: Pick<Stat, 'gid' | 'mode'>): Ownership {
  return { gid: stat.gid, mode: stat.mode & PERMISSIONS }
}

export function same(a: Ownership, b: Ownership): boolean {
  return a.gid === b.gid && a.mode === b.mode
}

/** Kubernetes' OnRootMismatch: the root shows what a finished walk leaves, since the root is changed last. */
export function rootMatches(root: Stat, order: OwnOrder): boolean {
  const decided = verdict(root, order)
  return 'want' in decided && same(decided.want, ownershipOf(root))
}

/** Whether `now` is `mode` after a chown: set-gid stays where the group may not execute (Linux, setattr_should_drop_sgid). */
export function isStripped(now: number, mode: number): boolean {
  return now !== mode && (now === (mode & ~SET_IDS) || now === (mode & ~SET_UID))
}

export function isDirectory(stat: Pick<Stat, 'mode'>): boolean {
  return (stat.mode & FILE_TYPE) === DIRECTORY
}

/** Only regular files have capabilities. Set-id bits a chown takes from everything but a directory (Linux, chown_common). */
export function isRegular(stat: Stat): boolean {
  return (stat.mode & FILE_TYPE) === REGULAR
}
