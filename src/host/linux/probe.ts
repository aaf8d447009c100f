import { statfsSync } from 'node:fs'
import type { Feature, FeatureName } from '../diagnosis.ts'
import { errorCode, type Handle } from '../host.ts'
import {
  AT_EMPTY_PATH,
  FS_IOC_GETFSUUID,
  MOVE_MOUNT_BENEATH,
  MOVE_MOUNT_F_EMPTY_PATH,
  MOVE_MOUNT_T_EMPTY_PATH,
  O_CLOEXEC,
  O_DIRECTORY,
  O_RDONLY,
  STATX_MNT_ID,
  STATX_MNT_ID_UNIQUE,
  SYS_FCHMODAT2,
  SYS_LISTXATTRAT,
  SYS_MOVE_MOUNT,
} from './constants.ts'
import { linuxInodes } from './inodes.ts'
import { address, libc, put, run, view } from './libc.ts'
import { linuxMounts } from './mounts.ts'
import { openUserNamespace } from './user-namespace.ts'

/** Makes each call once: on detached mounts that no path leads to, on no descriptor at all, or only to look. */
export function probeFeatures(): Feature[] {
  return [
    tried('open_tree', () => withRoot((root) => linuxInodes.close(linuxMounts.cloneTree(root)))),
    tried('fsopen', () => withTree(() => {})),
    tried('mount_setattr', () => withTree((tree) => linuxMounts.setFlags(tree, { set: 0, clear: 0 }))),
    tried('statx mount ids', () => hasMask(STATX_MNT_ID)),
    tried('openat2', () => withRoot((root) => linuxInodes.close(linuxInodes.openBeneath(root, '.')))),
    tried('user namespace', () => libc.close(openUserNamespace(0, 1))),
    tried('idmapped mount', () => withTree((tree) => linuxMounts.swapGroups(tree, 0, 1))),
    tried('MOVE_MOUNT_BENEATH', () => knows('move_mount', beneath)),
    tried('fchmodat2', () => knows('fchmodat2', chmodOfNothing)),
    tried('unique mount ids', () => hasMask(STATX_MNT_ID_UNIQUE)),
    tried('FS_IOC_GETFSUUID', askUuid),
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

const NONE = -1n

/** A kernel that knows the call and its flags looks at the descriptor next, and there is none. */
function knows(name: string, call: () => number | bigint): void {
  try {
    run(name, 'no descriptor', call)
  } catch (error) {
    if (errorCode(error) !== 'EBADF') throw error
  }
}

const BENEATH = BigInt(MOVE_MOUNT_BENEATH | MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH)
const EMPTY = BigInt(AT_EMPTY_PATH)
const beneath = () => libc.syscall(SYS_MOVE_MOUNT, NONE, put('name', ''), NONE, put('second', ''), BENEATH, 0n)
const chmodOfNothing = () => libc.syscall(SYS_FCHMODAT2, NONE, put('name', ''), 0n, EMPTY, 0n, 0n)
const listOfNothing = () => libc.syscall(SYS_LISTXATTRAT, NONE, put('name', 'x'), 0n, 0n, 0n, 0n)

function hasMask(bit: number): void {
  const { statx } = libc
  withRoot((root) => {
    run('statx', '/', () => statx(root, put('name', ''), AT_EMPTY_PATH, bit, address('struct')))
    if ((view('struct').readUInt32LE(0) & bit) !== 0) return
    throw Object.assign(new Error('statx does not tell them'), { code: 'ENOTSUP' })
  })
}

/** Some file systems have none: one that has answers, or the kernel that does not know the question says ENOTTY. */
function askUuid(): void {
  const paths = ['/', '/tmp', '/var/lib', '/dev/shm'].filter((path) => statfsSync(path, { bigint: true }) !== undefined)
  let last: unknown
  for (const path of paths) {
    const fd = run('openat', path, () => libc.openat(-100, put('name', path), O_RDONLY | O_DIRECTORY | O_CLOEXEC))
    try {
      run('FS_IOC_GETFSUUID', path, () => libc.ioctl(fd, FS_IOC_GETFSUUID, address('struct')))
      return
    } catch (error) {
      last = error
    } finally {
      libc.close(fd)
    }
  }
  throw last
}
