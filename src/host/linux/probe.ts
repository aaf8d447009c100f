import { statfsSync } from 'node:fs'
import type { Feature, FeatureName } from '../diagnosis.ts'
import { errorCode, type Handle } from '../host.ts'
import {
  AT_EMPTY_PATH,
  AT_FDCWD,
  MOVE_MOUNT_BENEATH,
  MOVE_MOUNT_F_EMPTY_PATH,
  MOVE_MOUNT_T_EMPTY_PATH,
  O_CLOEXEC,
  O_DIRECTORY,
  O_RDONLY,
  STATX_MNT_ID,
  STATX_MNT_ID_UNIQUE,
} from './constants.ts'
import { askUuid } from './file-system-id.ts'
import { linuxInodes } from './inodes.ts'
import { DATA, done, put, putEmpty, systemCall } from './kernel.ts'
import { linuxMounts } from './mounts.ts'
import { close, openAt } from './open.ts'
import { tells } from './statx.ts'
import { openUserNamespace } from './user-namespace.ts'

const moveMount = systemCall('move_mount')
const fchmodat2 = systemCall('fchmodat2')
const listxattrat = systemCall('listxattrat')

/** Makes each call once: on detached mounts that no path leads to, on no descriptor at all, or only to look. */
export function probeFeatures(): Feature[] {
  return [
    tried('open_tree', () => withRoot((root) => linuxInodes.close(linuxMounts.cloneTree(root)))),
    tried('fsopen', () => withTree(() => {})),
    tried('mount_setattr', () => withTree((tree) => linuxMounts.setFlags(tree, { set: 0, clear: 0 }))),
    tried('statx mount ids', () => hasMask(STATX_MNT_ID)),
    tried('openat2', () => withRoot((root) => linuxInodes.close(linuxInodes.openBeneath(root, '.')))),
    tried('user namespace', () => close(openUserNamespace(0, 1))),
    tried('idmapped mount', () => withTree((tree) => linuxMounts.swapGroups(tree, 0, 1))),
    tried('MOVE_MOUNT_BENEATH', () => knows('move_mount', beneath)),
    tried('fchmodat2', () => knows('fchmodat2', chmodOfNothing)),
    tried('unique mount ids', () => hasMask(STATX_MNT_ID_UNIQUE)),
    tried('FS_IOC_GETFSUUID', askUuidAnywhere),
    tried('listxattrat', () => knows('listxattrat', listOfNothing)),
  ]
}

function tried(name: FeatureName, attempt: () => void): Feature {
  try {
    attempt()
    return { name, works: true, detail: '' }
  } catch (error) {
    if (errorCode(error) === undefined) throw error
    return { name, works: false, detail: (error as Error).message }
  }
}

function withRoot(use: (root: Handle) => void): void {
  const root = linuxInodes.openTrusted('/')
  try {
    use(root)
  } finally {
    linuxInodes.close(root)
  }
}

function withTree(use: (tree: Handle) => void): void {
  const tree = linuxMounts.createTree('tmpfs', ['size=64k'])
  try {
    use(tree)
  } finally {
    linuxInodes.close(tree)
  }
}

const NONE = -1

/** A kernel that knows the call and its flags looks at the descriptor next, and there is none. */
function knows(name: string, call: () => number): void {
  try {
    done(call(), name, 'no descriptor')
  } catch (error) {
    if (errorCode(error) !== 'EBADF') throw error
  }
}

const BENEATH = MOVE_MOUNT_BENEATH | MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH
const beneath = () => moveMount(NONE, putEmpty(), NONE, putEmpty(), BENEATH)
const chmodOfNothing = () => fchmodat2(NONE, putEmpty(), 0, AT_EMPTY_PATH)
const listOfNothing = () => listxattrat(NONE, put('x'), 0, DATA, 0)

function hasMask(bit: number): void {
  withRoot((root) => {
    if (tells(root, bit)) return
    throw Object.assign(new Error('statx does not tell them'), { code: 'ENOTSUP' })
  })
}

/** Some file systems have none: one that has answers, or the kernel that does not know the question says ENOTTY. */
function askUuidAnywhere(): void {
  const paths = ['/', '/tmp', '/var/lib', '/dev/shm'].filter((path) => statfsSync(path, { bigint: true }) !== undefined)
  let last: unknown
  for (const path of paths) {
    const fd = openAt(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    try {
      askUuid(fd, path)
      return
    } catch (error) {
      last = error
    } finally {
      close(fd)
    }
  }
  throw last
}
