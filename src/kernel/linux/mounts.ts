import { openSync, writeFileSync } from 'node:fs'
import { type EntryName, getErrno, type Handle, type MountOperations, SystemError, tolerateErrno } from '../host.ts'
import { formatIdRanges, type IdMap } from '../id-map.ts'
import { readTextFile } from '../read-file.ts'
import { findDeviceNode, resolveMountSource } from './block-devices.ts'
import {
  AT_EMPTY_PATH,
  CALL_DATA_OFFSET,
  callData,
  cloneUserNamespace,
  createSystemCall,
  requireCallSuccess,
  SECOND_NAME_OFFSET,
  writeEmptyNameArgument,
  writeNameArgument,
} from './kernel.ts'
import { closeDescriptor, deferDescriptorClose, hasMountsOn, O_CLOEXEC, readMountAttributes } from './open.ts'

const openTree = createSystemCall('open_tree')
const moveMount = createSystemCall('move_mount')
const fsopen = createSystemCall('fsopen')
const fsconfigFlag = createSystemCall('fsconfig_flag')
const fsconfigString = createSystemCall('fsconfig_string')
const fsconfigCreate = createSystemCall('fsconfig_create')
const fsmount = createSystemCall('fsmount')
const mountSetattr = createSystemCall('mount_setattr')
const umount2 = createSystemCall('umount2')
const read = createSystemCall('read')

// include/uapi/linux/mount.h
const OPEN_TREE_CLONE = 1
const FSOPEN_CLOEXEC = 1
const AT_RECURSIVE = 0x8000 // include/uapi/linux/fcntl.h
const FSMOUNT_CLOEXEC = 1
const MOVE_MOUNT_BY_HANDLES = 0x4 | 0x40 // MOVE_MOUNT_F_EMPTY_PATH, MOVE_MOUNT_T_EMPTY_PATH
export const MOVE_MOUNT_BENEATH = 0x200
const MOUNT_ATTR_IDMAP = 0x100000
const MS_PRIVATE = 1 << 18
const MNT_FORCE = 1
const MNT_DETACH = 2
const UMOUNT_NOFOLLOW = 8

export const linuxMounts: MountOperations = {
  cloneTree(source, isRecursive = false) {
    const flags = OPEN_TREE_CLONE | O_CLOEXEC | AT_EMPTY_PATH | (isRecursive ? AT_RECURSIVE : 0)
    return requireCallSuccess(openTree(source, writeEmptyNameArgument(), flags), 'open_tree', 'the source') as Handle
  },

  createTree(fsType, options, device) {
    const source = device === undefined ? 'modekeep' : resolveMountSource(device)
    const context = requireCallSuccess(fsopen(writeNameArgument(fsType), FSOPEN_CLOEXEC), 'fsopen', fsType)
    using _ = deferDescriptorClose(context)
    const readDetail = () => readFsopenMessage(context)
    for (const option of [`source=${source}`, ...options]) {
      requireCallSuccess(configureMountOption(context, option), 'fsconfig', option, readDetail)
    }
    const result = fsconfigCreate(context)
    if (device === undefined) requireCallSuccess(result, 'fsconfig', fsType, readDetail)
    else requireCallSuccess(result, 'fsmount', findDeviceNode(device), readDetail)
    return requireCallSuccess(fsmount(context, FSMOUNT_CLOEXEC, 0), 'fsmount', fsType) as Handle
  },

  setFlags: (tree, { set, clear }, isRecursive = false) =>
    setMountAttributes(tree, isRecursive ? AT_RECURSIVE : 0, set, clear, MS_PRIVATE, 0),

  mapIds(tree, map) {
    setMountAttributes(tree, 0, MOUNT_ATTR_IDMAP, 0, 0, findUserNamespace(map))
  },

  attach: (tree, target) => attachMountTree(tree, target, 0),

  attachBeneath: (tree, target) =>
    tolerateErrno('EINVAL', () => attachMountTree(tree, target, MOVE_MOUNT_BENEATH)) !== undefined,

  unmount: (parent, name) => tolerateErrno('EBUSY', () => removeMount(parent, name, 0)) !== undefined,

  detach: (parent, name, abort = false) => removeMount(parent, name, MNT_DETACH | (abort ? MNT_FORCE : 0)),

  hasMountsOn,
  attributesOf: readMountAttributes,
  tableId: (handle) => Number(/^mnt_id:\s*(\d+)/m.exec(readTextFile(`/proc/self/fdinfo/${handle}`))?.[1]),
  table: () => readTextFile('/proc/self/mountinfo'),
}

/** @returns 0 */
function removeMount(parent: Handle, name: EntryName, flags: number): number {
  const path = Buffer.concat([Buffer.from(`/proc/self/fd/${parent}/`), name])
  return requireCallSuccess(umount2(writeNameArgument(path), UMOUNT_NOFOLLOW | flags), 'umount2', name)
}

/** Calls mount_setattr(2), Linux 5.12, with the fields of struct mount_attr. The handle is the mount's root. */
function setMountAttributes(
  tree: Handle,
  recursion: number,
  ...fields: [set: number, clear: number, propagation: number, userns: number]
): void {
  for (const [index, field] of fields.entries()) callData.writeBigUInt64LE(BigInt(field), index * 8)
  requireCallSuccess(
    mountSetattr(tree, writeEmptyNameArgument(), AT_EMPTY_PATH | recursion, CALL_DATA_OFFSET),
    'mount_setattr',
    'the new mount',
  )
}

/** @param flags MOVE_MOUNT_BENEATH or 0 */
export function attachMountTree(
  tree: Handle,
  target: Handle,
  flags: number,
  description = 'the mount directory',
): number {
  const name = writeEmptyNameArgument()
  return requireCallSuccess(
    moveMount(tree, name, target, name, MOVE_MOUNT_BY_HANDLES | flags),
    'move_mount',
    description,
  )
}

function configureMountOption(context: number, option: string): number {
  const equals = option.indexOf('=')
  if (equals < 0) return fsconfigFlag(context, 0, writeNameArgument(option))
  return fsconfigString(
    context,
    0,
    writeNameArgument(option.slice(0, equals)),
    writeNameArgument(option.slice(equals + 1), SECOND_NAME_OFFSET),
  )
}

/** Reads the kernel's message for a rejected option from the fsopen(2) context: "e tmpfs: Bad value for 'size'". */
function readFsopenMessage(context: number): string {
  const size = read(context, CALL_DATA_OFFSET, 4096)
  const text = callData.toString('utf8', 0, Math.max(size, 0))
  return text.replace(/^[ewi] /, '').trim()
}

const wait4 = createSystemCall('wait4')

/** Also waits for children that send no signal when they end. */
const WAIT_ALL_CHILDREN = 0x40000000

/**
 * Creates a user namespace with the ids of a mount's map.
 * @returns its file descriptor, the only reference to it, because no process is in it
 * @throws {SystemError} `clone` (ENOSPC: user.max_user_namespaces), or `uid_map`, `gid_map` (EPERM: the process is in a
 * user namespace itself; EINVAL: see `describeIdMapFault`)
 */
export function openUserNamespace({ uids, gids }: IdMap): number {
  // The child has its namespace in /proc until it is waited for. If this process crashes here, init waits for it.
  const child = requireCallSuccess(cloneUserNamespace(), 'clone', 'a user namespace', describeUserNamespaceLimit)
  try {
    callOnNamespace('uid_map', () => writeFileSync(`/proc/${child}/uid_map`, formatIdRanges(uids)))
    callOnNamespace('gid_map', () => writeFileSync(`/proc/${child}/gid_map`, formatIdRanges(gids)))
    return callOnNamespace('open', () => openSync(`/proc/${child}/ns/user`, 'r'))
  } finally {
    requireCallSuccess(wait4(child, CALL_DATA_OFFSET, WAIT_ALL_CHILDREN), 'wait4', String(child))
  }
}

const MAX_KEPT_USER_NAMESPACES = 4
/** Open user namespaces of the last maps: a node's pods have few groups, and a new one takes some 2 ms. */
const keptUserNamespaces = new Map<string, number>()

function findUserNamespace(map: IdMap): number {
  const key = JSON.stringify(map)
  const kept = keptUserNamespaces.get(key) ?? openUserNamespaceWithinLimit(map)
  // The last ones are kept.
  keptUserNamespaces.delete(key)
  keptUserNamespaces.set(key, kept)
  if (keptUserNamespaces.size > MAX_KEPT_USER_NAMESPACES) closeKeptUserNamespaces(1)
  return kept
}

/** The kept ones count for the limit of user namespaces. */
function openUserNamespaceWithinLimit(map: IdMap): number {
  const opened = keptUserNamespaces.size === 0 ? undefined : tolerateErrno('ENOSPC', () => openUserNamespace(map))
  if (opened !== undefined) return opened
  closeKeptUserNamespaces(keptUserNamespaces.size)
  return openUserNamespace(map)
}

function closeKeptUserNamespaces(count: number): void {
  for (const [key, opened] of [...keptUserNamespaces].slice(0, count)) {
    keptUserNamespaces.delete(key)
    closeDescriptor(opened)
  }
}

function describeUserNamespaceLimit(): string {
  // A kernel without user namespaces does not have this file, and SELinux may deny it.
  const limit = tolerateErrno('ENOENT EACCES', () => readTextFile('/proc/sys/user/max_user_namespaces'))
  return limit === undefined ? '' : `user.max_user_namespaces is ${limit.trim()}`
}

function callOnNamespace<T>(name: string, call: () => T): T {
  try {
    return call()
  } catch (error) {
    throw new SystemError(name, getErrno(error) ?? 'EIO', 'a user namespace')
  }
}
