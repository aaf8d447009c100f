import { existsSync, openSync, writeFileSync } from 'node:fs'
import { errorCode, type Handle, type Mounts, type Name, SystemError, tolerateErrno } from '../host.ts'
import { formatIdRanges, type IdMap } from '../id-map.ts'
import { readText } from '../read-file.ts'
import { findDeviceName, resolveMountSource } from './block-devices.ts'
import {
  AT_EMPTY_PATH,
  cloneUserNamespace,
  DATA,
  data,
  putEmpty,
  putName,
  requireSuccess,
  SECOND_NAME,
  systemCall,
} from './kernel.ts'
import { deferCloseFd, hasMountsOn, O_CLOEXEC, readMountAttributes } from './open.ts'

const openTree = systemCall('open_tree')
const moveMount = systemCall('move_mount')
const fsopen = systemCall('fsopen')
const fsconfigFlag = systemCall('fsconfig_flag')
const fsconfigString = systemCall('fsconfig_string')
const fsconfigCreate = systemCall('fsconfig_create')
const fsmount = systemCall('fsmount')
const mountSetattr = systemCall('mount_setattr')
const umount2 = systemCall('umount2')
const read = systemCall('read')

// include/uapi/linux/mount.h
const OPEN_TREE_CLONE = 1
const FSOPEN_CLOEXEC = 1
const AT_RECURSIVE = 0x8000 // include/uapi/linux/fcntl.h
const FSMOUNT_CLOEXEC = 1
const MOVE_HANDLES = 0x4 | 0x40 // MOVE_MOUNT_F_EMPTY_PATH, MOVE_MOUNT_T_EMPTY_PATH
export const MOVE_MOUNT_BENEATH = 0x200
const MOUNT_ATTR_IDMAP = 0x100000
const MS_PRIVATE = 1 << 18
const MNT_FORCE = 1
const MNT_DETACH = 2
const UMOUNT_NOFOLLOW = 8

export const linuxMounts: Mounts = {
  cloneTree(source, isRecursive = false) {
    const flags = OPEN_TREE_CLONE | O_CLOEXEC | AT_EMPTY_PATH | (isRecursive ? AT_RECURSIVE : 0)
    return requireSuccess(openTree(source, putEmpty(), flags), 'open_tree', 'the source') as Handle
  },

  createTree(fsType, options, device) {
    const source = device === undefined ? 'modekeep' : resolveMountSource(device)
    const context = requireSuccess(fsopen(putName(fsType), FSOPEN_CLOEXEC), 'fsopen', fsType)
    using _ = deferCloseFd(context)
    const readDetail = () => readKernelMessage(context)
    for (const option of [`source=${source}`, ...options]) {
      requireSuccess(configureOption(context, option), 'fsconfig', option, readDetail)
    }
    const result = fsconfigCreate(context)
    if (device === undefined) requireSuccess(result, 'fsconfig', fsType, readDetail)
    else requireSuccess(result, 'fsmount', findDeviceName(device), readDetail)
    return requireSuccess(fsmount(context, FSMOUNT_CLOEXEC, 0), 'fsmount', fsType) as Handle
  },

  setFlags: (tree, { set, clear }, isRecursive = false) =>
    setAttributes(tree, isRecursive ? AT_RECURSIVE : 0, set, clear, MS_PRIVATE, 0),

  mapIds(tree, map) {
    const userNamespace = openUserNamespace(map)
    using _ = deferCloseFd(userNamespace)
    setAttributes(tree, 0, MOUNT_ATTR_IDMAP, 0, 0, userNamespace)
  },

  attach: (tree, target) => attachTree(tree, target, 0),

  attachBeneath: (tree, target) =>
    tolerateErrno('EINVAL', () => attachTree(tree, target, MOVE_MOUNT_BENEATH)) !== undefined,

  unmount: (parent, name) => tolerateErrno('EBUSY', () => removeMount(parent, name, 0)) !== undefined,

  detach: (parent, name, abort = false) => removeMount(parent, name, MNT_DETACH | (abort ? MNT_FORCE : 0)),

  hasMountsOn,
  attributesOf: readMountAttributes,
  tableId: (handle) => Number(/^mnt_id:\s*(\d+)/m.exec(readText(`/proc/self/fdinfo/${handle}`))?.[1]),
  table: () => readText('/proc/self/mountinfo'),
}

/** @returns 0 */
function removeMount(parent: Handle, name: Name, flags: number): number {
  const path = Buffer.concat([Buffer.from(`/proc/self/fd/${parent}/`), name])
  return requireSuccess(umount2(putName(path), UMOUNT_NOFOLLOW | flags), 'umount2', name)
}

/** Calls mount_setattr(2), Linux 5.12, with the fields of struct mount_attr. The handle is the mount's root. */
function setAttributes(
  tree: Handle,
  recursion: number,
  ...fields: [set: number, clear: number, propagation: number, userns: number]
): void {
  for (const [index, field] of fields.entries()) data.writeBigUInt64LE(BigInt(field), index * 8)
  requireSuccess(mountSetattr(tree, putEmpty(), AT_EMPTY_PATH | recursion, DATA), 'mount_setattr', 'the new mount')
}

/** @param flags MOVE_MOUNT_BENEATH or 0 */
export function attachTree(tree: Handle, target: Handle, flags: number, description = 'the mount directory'): number {
  const name = putEmpty()
  return requireSuccess(moveMount(tree, name, target, name, MOVE_HANDLES | flags), 'move_mount', description)
}

function configureOption(context: number, option: string): number {
  const equals = option.indexOf('=')
  if (equals < 0) return fsconfigFlag(context, 0, putName(option))
  return fsconfigString(context, 0, putName(option.slice(0, equals)), putName(option.slice(equals + 1), SECOND_NAME))
}

/** Reads the kernel's message for a rejected option from the fsopen(2) context: "e tmpfs: Bad value for 'size'". */
function readKernelMessage(context: number): string {
  const size = read(context, DATA, 4096)
  const text = data.toString('utf8', 0, Math.max(size, 0))
  return text.replace(/^[ewi] /, '').trim()
}

const wait4 = systemCall('wait4')

/** Also waits for children that send no signal when they end. */
const WALL = 0x40000000

/**
 * Creates a user namespace with the ids of a mount's map.
 * @returns its file descriptor, the only reference to it, because no process is in it
 * @throws {SystemError} `clone` (ENOSPC: user.max_user_namespaces), or `uid_map`, `gid_map` (EPERM: the process is in a
 * user namespace itself; EINVAL: see `describeIdMapFault`)
 */
export function openUserNamespace({ uids, gids }: IdMap): number {
  // The child has its namespace in /proc until it is waited for. If this process crashes here, init waits for it.
  const child = requireSuccess(cloneUserNamespace(), 'clone', 'a user namespace', describeLimit)
  try {
    writeMap(child, 'uid_map', formatIdRanges(uids))
    writeMap(child, 'gid_map', formatIdRanges(gids))
    return openSync(`/proc/${child}/ns/user`, 'r')
  } finally {
    requireSuccess(wait4(child, DATA, WALL), 'wait4', String(child))
  }
}

function describeLimit(): string {
  const path = '/proc/sys/user/max_user_namespaces'
  // A kernel without user namespaces does not have this file.
  return existsSync(path) ? `user.max_user_namespaces is ${readText(path).trim()}` : ''
}

function writeMap(pid: number, name: 'uid_map' | 'gid_map', map: string): void {
  try {
    writeFileSync(`/proc/${pid}/${name}`, map)
  } catch (error) {
    throw new SystemError(name, errorCode(error) ?? 'EIO', 'a user namespace')
  }
}
