import { errorCode, type Handle, type Mounts } from '../host.ts'
import { readText } from '../read-text.ts'
import { nameOf, sourceOf } from './block-devices.ts'
import {
  AT_EMPTY_PATH,
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
  UMOUNT_NOFOLLOW,
} from './constants.ts'
import { DATA, data, done, put, putEmpty, putSecond, systemCall } from './kernel.ts'
import { setMountAttributes } from './mount-attributes.ts'
import { close } from './open.ts'
import { openUserNamespace } from './user-namespace.ts'

const openTree = systemCall('open_tree')
const moveMount = systemCall('move_mount')
const fsopen = systemCall('fsopen')
const fsconfigFlag = systemCall('fsconfig_flag')
const fsconfigString = systemCall('fsconfig_string')
const fsconfigCreate = systemCall('fsconfig_create')
const fsmount = systemCall('fsmount')
const umount2 = systemCall('umount2')
const read = systemCall('read')

export const linuxMounts: Mounts = {
  cloneTree(source) {
    const flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH
    return done(openTree(source, putEmpty(), flags), 'open_tree', 'the source') as Handle
  },

  createTree(fsType, options, device) {
    const source = device === undefined ? 'modekeep' : sourceOf(device)
    const context = done(fsopen(put(fsType), FSOPEN_CLOEXEC), 'fsopen', fsType)
    const why = () => kernelSays(context)
    try {
      for (const option of [`source=${source}`, ...options]) {
        done(configure(context, option), 'fsconfig', option, why)
      }
      const created = fsconfigCreate(context)
      if (device === undefined) done(created, 'fsconfig', fsType, why)
      else done(created, 'fsmount', nameOf(device), why)
      return done(fsmount(context, FSMOUNT_CLOEXEC, 0), 'fsmount', fsType) as Handle
    } finally {
      close(context)
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
      close(userNamespace)
    }
  },

  attach(tree, target) {
    move(tree, target, 0)
  },

  attachBeneath(tree, target) {
    try {
      move(tree, target, MOVE_MOUNT_BENEATH)
      return true
    } catch (error) {
      if (errorCode(error) === 'EINVAL') return false
      throw error
    }
  },

  detach(parent, name, abort = false) {
    const path = Buffer.concat([Buffer.from(`/proc/self/fd/${parent}/`), name])
    const flags = MNT_DETACH | UMOUNT_NOFOLLOW | (abort ? MNT_FORCE : 0)
    done(umount2(put(path), flags), 'umount2', name)
  },

  tableId(handle) {
    const text = readText(`/proc/self/fdinfo/${handle}`)
    return Number(/^mnt_id:\s*(\d+)/m.exec(text)?.[1])
  },

  table: () => readText('/proc/self/mountinfo'),
}

function move(tree: Handle, target: Handle, extra: number): void {
  const flags = MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH | extra
  const name = putEmpty()
  done(moveMount(tree, name, target, name, flags), 'move_mount', 'the mount directory')
}

function configure(context: number, option: string): number {
  const equals = option.indexOf('=')
  if (equals < 0) return fsconfigFlag(context, 0, put(option))
  return fsconfigString(context, 0, put(option.slice(0, equals)), putSecond(option.slice(equals + 1)))
}

/** The kernel's own words for a refused option, read from the fsopen(2) context: "e tmpfs: Bad value for 'size'". */
function kernelSays(context: number): string {
  const size = read(context, DATA, 4096)
  const text = data.toString('utf8', 0, Math.max(size, 0))
  return text.replace(/^[ewi] /, '').trim()
}
