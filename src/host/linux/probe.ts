import { constants, existsSync } from 'node:fs'
import type { Feature, FeatureName } from '../diagnosis.ts'
import { closing, errorCode, type Handle, unless } from '../host.ts'
import { swapping } from '../id-map.ts'
import { askUuid } from './file-system-id.ts'
import { linuxInodes } from './inodes.ts'
import { AT_EMPTY_PATH, AT_FDCWD, DATA, done, put, putEmpty, systemCall } from './kernel.ts'
import { linuxMounts, MOVE_MOUNT_BENEATH, move } from './mounts.ts'
import { close, closingFd, openAt } from './open.ts'
import { STATX_MNT_ID, STATX_MNT_ID_UNIQUE, tells } from './statx.ts'
import { openUserNamespace } from './user-namespace.ts'

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
    tried('user namespace', () => close(openUserNamespace(swapping(0, 1)))),
    tried('idmapped mount', () => withTree((tree) => linuxMounts.mapIds(tree, swapping(0, 1)))),
    tried('MOVE_MOUNT_BENEATH', () => knows(beneath)),
    tried('fchmodat2', () => knows(chmodOfNothing)),
    tried('unique mount ids', () => hasMask(STATX_MNT_ID_UNIQUE)),
    tried('FS_IOC_GETFSUUID', askUuidAnywhere),
    tried('listxattrat', () => knows(listOfNothing)),
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
  using _ = closing(linuxInodes, root)
  use(root)
}

function withTree(use: (tree: Handle) => void): void {
  const tree = linuxMounts.createTree('tmpfs', ['size=64k'])
  using _ = closing(linuxInodes, tree)
  use(tree)
}

const NONE = -1 as Handle
const NOTHING = 'no descriptor'

/** A kernel that knows the call and its flags looks at the descriptor next, and there is none. */
function knows(call: () => void): void {
  unless('EBADF', call)
}

const beneath = () => move(NONE, NONE, MOVE_MOUNT_BENEATH, NOTHING)
const chmodOfNothing = () => done(fchmodat2(NONE, putEmpty(), 0, AT_EMPTY_PATH), 'fchmodat2', NOTHING)
const listOfNothing = () => done(listxattrat(NONE, put('x'), 0, DATA, 0), 'listxattrat', NOTHING)

function hasMask(bit: number): void {
  withRoot((root) => {
    if (tells(root, bit)) return
    throw Object.assign(new Error('statx does not tell them'), { code: 'ENOTSUP' })
  })
}

/** Some file systems have none: one that has answers, or the kernel that does not know the question says ENOTTY. */
function askUuidAnywhere(): void {
  let last: unknown
  for (const path of ['/', '/tmp', '/var/lib', '/dev/shm'].filter((path) => existsSync(path))) {
    try {
      const fd = openAt(AT_FDCWD, path, constants.O_RDONLY | constants.O_DIRECTORY)
      using _ = closingFd(fd)
      askUuid(fd, path)
      return
    } catch (error) {
      last = error
    }
  }
  throw last
}
