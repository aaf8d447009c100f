import type { FsGroupRequest } from '../../config/mount-request.ts'
import {
  BLOCK_DEVICE_TYPE,
  CHARACTER_DEVICE_TYPE,
  DIRECTORY_TYPE,
  FILE_TYPE_MASK,
  REGULAR_FILE_TYPE,
  type Stat,
  SYMLINK_TYPE,
} from '../../kernel/host.ts'

/** The attributes of an inode that a walk may change. The owner and the times are never changed. */
export interface Ownership {
  gid: number
  /** Permission bits with set-uid, set-gid and sticky; no type bits. */
  mode: number
}

export const CHMOD_MODE_BITS = 0o7777
export const SET_ID_MODE_BITS = 0o6000
const SET_UID_MODE_BIT = 0o4000
export const SET_GID_MODE_BIT = 0o2000

/** Kubelet's masks (SetVolumeOwnership, pkg/volume/volume_linux.go): rw for files, rwx and set-gid for directories. */
const FILE_GRANT_MODE_BITS = 0o660
const DIRECTORY_GRANT_MODE_BITS = 0o770

/**
 * Returns the type of an inode that no walk changes. A symlink has no access bits of its own, and a device node's group
 * opens hardware.
 */
export function findUnchangeableInodeType({ mode }: Pick<Stat, 'mode'>): 'symlink' | 'device' | undefined {
  const type = mode & FILE_TYPE_MASK
  if (type === SYMLINK_TYPE) return 'symlink'
  return type === BLOCK_DEVICE_TYPE || type === CHARACTER_DEVICE_TYPE ? 'device' : undefined
}

/** Returns the requested group, and the mode of `computeRequestedMode`. */
export function computeRequestedOwnership(stat: Pick<Stat, 'mode'>, fsGroup: FsGroupRequest): Ownership {
  return { gid: fsGroup.groupId, mode: computeRequestedMode(stat, fsGroup) }
}

/** Adds set-gid to directories, so that new files inherit the group, and with `grant` the group's permission bits. */
export function computeRequestedMode({ mode }: Pick<Stat, 'mode'>, { access, setGid = true }: FsGroupRequest): number {
  const bits = mode & CHMOD_MODE_BITS
  if ((mode & FILE_TYPE_MASK) === DIRECTORY_TYPE)
    return bits | (setGid ? SET_GID_MODE_BIT : 0) | (access === 'grant' ? DIRECTORY_GRANT_MODE_BITS : 0)
  return access === 'grant' ? bits | FILE_GRANT_MODE_BITS : bits
}

/**
 * Returns whether the inode already has the requested group and mode. It runs for every inode of a volume, so it
 * allocates no object.
 */
export function hasRequestedOwnership(stat: Pick<Stat, 'mode' | 'gid'>, fsGroup: FsGroupRequest): boolean {
  return stat.gid === fsGroup.groupId && (stat.mode & CHMOD_MODE_BITS) === computeRequestedMode(stat, fsGroup)
}

export function extractOwnership(stat: Pick<Stat, 'gid' | 'mode'>): Ownership {
  return { gid: stat.gid, mode: stat.mode & CHMOD_MODE_BITS }
}

export function isSameOwnership(a: Ownership, b: Ownership): boolean {
  return a.gid === b.gid && a.mode === b.mode
}

/** Kubernetes' OnRootMismatch: a matching root means that a walk was completed, because the root is changed last. */
export function isRootMatchingFsGroup(root: Stat, fsGroup: FsGroupRequest): boolean {
  return findUnchangeableInodeType(root) === undefined && hasRequestedOwnership(root, fsGroup)
}

/**
 * Returns whether `now` is what a chown makes of `mode`. A chown keeps set-gid if the group may not execute
 * (setattr_should_drop_sgid).
 */
export function isModeStrippedByChown(now: number, mode: number): boolean {
  return now !== mode && (now === (mode & ~SET_ID_MODE_BITS) || now === (mode & ~SET_UID_MODE_BIT))
}

/**
 * Only regular files have capabilities. A chown drops the set-id bits of everything but directories (Linux,
 * chown_common).
 */
export function isRegularFile(stat: Stat): boolean {
  return (stat.mode & FILE_TYPE_MASK) === REGULAR_FILE_TYPE
}

/** Returns whether a pod's user made the root private, as a database server does with its data directory: 0700. */
export function isRootPrivateToOwner({ uid, gid, mode }: Stat, group: number): boolean {
  return uid !== 0 && gid === group && (mode & 0o777) === 0o700
}
