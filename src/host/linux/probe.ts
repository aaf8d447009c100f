import { constants, existsSync } from 'node:fs'
import type { Feature, FeatureName } from '../diagnosis.ts'
import { deferClose, errorCode, type Handle, tolerateErrno } from '../host.ts'
import { createSwapMap } from '../id-map.ts'
import { requestUuid } from './file-system-id.ts'
import { linuxInodes } from './inodes.ts'
import { AT_EMPTY_PATH, AT_FDCWD, DATA, putEmpty, putName, requireSuccess, systemCall } from './kernel.ts'
import { attachTree, linuxMounts, MOVE_MOUNT_BENEATH, openUserNamespace } from './mounts.ts'
import { close, deferCloseFd, openAt } from './open.ts'
import { reportsField, STATX_MNT_ID, STATX_MNT_ID_UNIQUE } from './statx.ts'

const fchmodat2 = systemCall('fchmodat2')
const listxattrat = systemCall('listxattrat')

/** Makes each call once: on detached mounts without a path, on an invalid descriptor, or without changes. */
export function probeFeatures(): Feature[] {
  return [
    probeFeature('open_tree', () => withRoot((root) => linuxInodes.close(linuxMounts.cloneTree(root)))),
    probeFeature('fsopen', () => withTree(() => {})),
    probeFeature('mount_setattr', () => withTree((tree) => linuxMounts.setFlags(tree, { set: 0, clear: 0 }))),
    probeFeature('statx mount ids', () => assertStatxField(STATX_MNT_ID)),
    probeFeature('openat2', () => withRoot((root) => linuxInodes.close(linuxInodes.openBeneath(root, '.')))),
    probeFeature('user namespace', () => close(openUserNamespace(createSwapMap(0, 1)))),
    probeFeature('idmapped mount', () => withTree((tree) => linuxMounts.mapIds(tree, createSwapMap(0, 1)))),
    probeFeature('MOVE_MOUNT_BENEATH', () => expectBadDescriptor(callMoveBeneath)),
    probeFeature('fchmodat2', () => expectBadDescriptor(callFchmodat2)),
    probeFeature('unique mount ids', () => assertStatxField(STATX_MNT_ID_UNIQUE)),
    probeFeature('FS_IOC_GETFSUUID', requestAnyUuid),
    probeFeature('listxattrat', () => expectBadDescriptor(callListxattrat)),
  ]
}

function probeFeature(name: FeatureName, attempt: () => void): Feature {
  try {
    attempt()
    return { name, works: true, detail: '' }
  } catch (error) {
    const errno = errorCode(error)
    if (errno === undefined) throw error
    return { name, works: false, detail: (error as Error).message, errno }
  }
}

function withRoot(use: (root: Handle) => void): void {
  const root = linuxInodes.openTrusted('/')
  using _ = deferClose(linuxInodes, root)
  use(root)
}

function withTree(use: (tree: Handle) => void): void {
  const tree = linuxMounts.createTree('tmpfs', ['size=64k'])
  using _ = deferClose(linuxInodes, tree)
  use(tree)
}

const NO_HANDLE = -1 as Handle
const NOTHING = 'no descriptor'

/** A kernel that has the call and its flags checks the descriptor next and returns EBADF. */
function expectBadDescriptor(call: () => void): void {
  tolerateErrno('EBADF', call)
}

const callMoveBeneath = () => attachTree(NO_HANDLE, NO_HANDLE, MOVE_MOUNT_BENEATH, NOTHING)
const callFchmodat2 = () => requireSuccess(fchmodat2(NO_HANDLE, putEmpty(), 0, AT_EMPTY_PATH), 'fchmodat2', NOTHING)
const callListxattrat = () => requireSuccess(listxattrat(NO_HANDLE, putName('x'), 0, DATA, 0), 'listxattrat', NOTHING)

function assertStatxField(bit: number): void {
  withRoot((root) => {
    if (reportsField(root, bit)) return
    throw Object.assign(new Error('statx does not tell them'), { code: 'ENOTSUP' })
  })
}

/** Some file systems have no UUID. One that has a UUID returns it, and a kernel without the request returns ENOTTY. */
function requestAnyUuid(): void {
  let lastError: unknown
  for (const path of ['/', '/tmp', '/var/lib', '/dev/shm'].filter((path) => existsSync(path))) {
    try {
      const fd = openAt(AT_FDCWD, path, constants.O_RDONLY | constants.O_DIRECTORY)
      using _ = deferCloseFd(fd)
      requestUuid(fd, path)
      return
    } catch (error) {
      lastError = error
    }
  }
  throw lastError
}
