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
  /** False: directories get no set-gid that they do not have. */
  setGid?: boolean | undefined
  /** Also what somebody changed since an earlier walk, where it is surely the inode that was recorded. */
  isForced?: boolean | undefined
}

/** Kubelet's masks (SetVolumeOwnership, pkg/volume/volume_linux.go): rw for files, rwx and set-gid for directories. */
const GRANTED_FILE = 0o660
const GRANTED_DIRECTORY = 0o770

/** Why no walk changes such an inode: a link has no access of its own, and a device node's group opens hardware. */
export function whyUntouchable({ mode }: Pick<Stat, 'mode'>): 'symlink' | 'device' | undefined {
  const type = mode & FILE_TYPE
  if (type === SYMLINK) return 'symlink'
  return type === BLOCK_DEVICE || type === CHARACTER_DEVICE ? 'device' : undefined
}

/** The group everywhere, set-gid on directories so that new files inherit it unless a rule forbids that, and with `grant` the group's bits. */
export function wantedOwnership(stat: Pick<Stat, 'mode'>, order: OwnOrder): Ownership {
  return { gid: order.group, mode: wantedMode(stat, order) }
}

/** The permission bits of `wantedOwnership`. */
export function wantedMode({ mode }: Pick<Stat, 'mode'>, { access, setGid = true }: OwnOrder): number {
  const bits = mode & PERMISSIONS
  if ((mode & FILE_TYPE) === DIRECTORY)
    return bits | (setGid ? SET_GID : 0) | (access === 'grant' ? GRANTED_DIRECTORY : 0)
  return access === 'grant' ? bits | GRANTED_FILE : bits
}

/** Whether an inode is as it is wanted. Asked of every inode of a volume: it makes no object. */
export function isRight(stat: Pick<Stat, 'mode' | 'gid'>, order: OwnOrder): boolean {
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
  return whyUntouchable(root) === undefined && isRight(root, order)
}

/** Whether `now` is `mode` after a chown: set-gid stays if the group may not execute (setattr_should_drop_sgid). */
export function isStripped(now: number, mode: number): boolean {
  return now !== mode && (now === (mode & ~SET_IDS) || now === (mode & ~SET_UID))
}

/** Only regular files have capabilities. Set-id bits a chown takes from all but a directory (Linux, chown_common). */
export function isRegular(stat: Stat): boolean {
  return (stat.mode & FILE_TYPE) === REGULAR
}
