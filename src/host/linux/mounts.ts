import { errorCode, type Handle, type Mounts } from '../host.ts'
import { readText } from '../read-text.ts'
import { nameOf, sourceOf } from './block-devices.ts'
import {
  AT_EMPTY_PATH,
  FSCONFIG_CMD_CREATE,
  FSCONFIG_SET_FLAG,
  FSCONFIG_SET_STRING,
  FSMOUNT_CLOEXEC,
  FSOPEN_CLOEXEC,
  MNT_DETACH,
  MNT_FORCE,
  MOUNT_ATTR_IDMAP,
  MOVE_MOUNT_BENEATH,
  MOVE_MOUNT_F_EMPTY_PATH,
  MOVE_MOUNT_T_EMPTY_PATH,
  MS_PRIVATE,
  OPEN_TREE_CLOEXEC,
  OPEN_TREE_CLONE,
  SYS_FSCONFIG,
  SYS_FSMOUNT,
  SYS_FSOPEN,
  SYS_MOVE_MOUNT,
  SYS_OPEN_TREE,
  UMOUNT_NOFOLLOW,
} from './constants.ts'
import { address, libc, put, run, runOnce, view } from './libc.ts'
import { setMountAttributes } from './mount-attributes.ts'
import { openUserNamespace } from './user-namespace.ts'

export const linuxMounts: Mounts = {
  cloneTree(source) {
    const flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH
    return run('open_tree', 'the source', () =>
      libc.syscall(SYS_OPEN_TREE, BigInt(source), put('name', ''), BigInt(flags), 0n, 0n, 0n),
    ) as Handle
  },

  createTree(fsType, options, device) {
    const source = device === undefined ? 'modekeep' : sourceOf(device)
    const context = run('fsopen', fsType, () =>
      libc.syscall(SYS_FSOPEN, put('name', fsType), BigInt(FSOPEN_CLOEXEC), 0n, 0n, 0n, 0n),
    )
    const why = () => kernelSays(context)
    try {
      for (const option of [`source=${source}`, ...options]) {
        run('fsconfig', option, () => configure(context, option), why)
      }
      // A context that refused once answers EBUSY from then on.
      if (device === undefined) run('fsconfig', fsType, () => create(context), why)
      else runOnce('fsmount', nameOf(device), () => create(context), why)
      return run('fsmount', fsType, () =>
        libc.syscall(SYS_FSMOUNT, BigInt(context), BigInt(FSMOUNT_CLOEXEC), 0n, 0n, 0n, 0n),
      ) as Handle
    } finally {
      libc.close(context)
    }
  },

  setFlags(tree, { set, clear }) {
    setMountAttributes(tree, { set, clear, propagation: MS_PRIVATE, userNamespace: 0 })
  },

  swapGroups(tree, one, other) {
    const userNamespace = openUserNamespace(one, other)
    try {
      setMountAttributes(tree, { set: MOUNT_ATTR_IDMAP, clear: 0, propagation: 0, userNamespace })
    } finally {
      libc.close(userNamespace)
    }
  },

  attach(tree, target) {
    moveMount(tree, target, 0)
  },

  attachBeneath(tree, target) {
    try {
      moveMount(tree, target, MOVE_MOUNT_BENEATH)
      return true
    } catch (error) {
      if (errorCode(error) === 'EINVAL') return false
      throw error
    }
  },

  detach(parent, name, abort = false) {
    const path = Buffer.concat([Buffer.from(`/proc/self/fd/${parent}/`), name])
    const flags = MNT_DETACH | UMOUNT_NOFOLLOW | (abort ? MNT_FORCE : 0)
    run('umount2', name, () => libc.umount2(put('name', path), flags))
  },

  tableId(handle) {
    const text = readText(`/proc/self/fdinfo/${handle}`)
    return Number(/^mnt_id:\s*(\d+)/m.exec(text)?.[1])
  },

  table: () => readText('/proc/self/mountinfo'),
}

function moveMount(tree: Handle, target: Handle, extra: number): void {
  const flags = MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH | extra
  run('move_mount', 'the mount directory', () =>
    libc.syscall(SYS_MOVE_MOUNT, BigInt(tree), put('name', ''), BigInt(target), put('second', ''), BigInt(flags), 0n),
  )
}

function configure(context: number, option: string): bigint {
  const equals = option.indexOf('=')
  if (equals < 0) return fsconfig(context, FSCONFIG_SET_FLAG, put('name', option), 0n)
  return fsconfig(
    context,
    FSCONFIG_SET_STRING,
    put('name', option.slice(0, equals)),
    put('second', option.slice(equals + 1)),
  )
}

function create(context: number): bigint {
  return fsconfig(context, FSCONFIG_CMD_CREATE, 0n, 0n)
}

function fsconfig(context: number, command: number, key: bigint, value: bigint): bigint {
  return libc.syscall(SYS_FSCONFIG, BigInt(context), BigInt(command), key, value, 0n, 0n)
}

/** The kernel's own words for a refused option, read from the fsopen(2) context: "e tmpfs: Bad value for 'size'". */
function kernelSays(context: number): string {
  const size = Number(libc.read(context, address('value'), 4096n))
  return size > 0
    ? view('value')
        .subarray(0, size)
        .toString()
        .replace(/^[ewi] /, '')
        .trim()
    : ''
}
