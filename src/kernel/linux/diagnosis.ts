import * as fs from 'node:fs'
import { constants, existsSync } from 'node:fs'
import { release } from 'node:os'
import { createNodeFiles } from '../administration.ts'
import { deferClose, errorCode, type Handle, tolerateErrno } from '../host.ts'
import { createSwapMap } from '../id-map.ts'
import { tolerateSystemErrors } from '../system-error.ts'
import { requestUuid } from './file-system-id.ts'
import { linuxInodes } from './inodes.ts'
import { AT_EMPTY_PATH, AT_FDCWD, DATA, putEmpty, putName, requireSuccess, systemCall } from './kernel.ts'
import { attachTree, linuxMounts, MOVE_MOUNT_BENEATH, openUserNamespace } from './mounts.ts'
import { close, deferCloseFd, openAt } from './open.ts'
import { findProgram, SYSTEM_PATH } from './programs.ts'
import { type SelfTest, selfTest } from './self-test.ts'
import { reportsField, STATX_MNT_ID, STATX_MNT_ID_UNIQUE } from './statx.ts'

/** Result of trying a kernel feature that modekeep uses. The trial changes nothing on the node. */
export interface Feature {
  name: FeatureName
  works: boolean
  /** The kernel's error if the feature does not work. */
  detail: string
  /** Its errno name. */
  errno?: string
}

export type FeatureName =
  | 'open_tree'
  | 'fsopen'
  | 'mount_setattr'
  | 'statx mount ids'
  | 'openat2'
  | 'user namespace'
  | 'idmapped mount'
  | 'MOVE_MOUNT_BENEATH'
  | 'fchmodat2'
  | 'unique mount ids'
  | 'FS_IOC_GETFSUUID'
  | 'listxattrat'

/** The queries about a node that only `doctor` makes. */
export interface Diagnosis {
  features(): Feature[]
  /** Returns the running kernel's release, as uname(2) reports it. */
  release(): string
  selfTest(): SelfTest[]
  /** @returns the program's path @throws {HelperError} naming the package that contains it */
  findProgram(program: string): string
  /** Returns the free space for root. `inodes` is undefined if the file system does not count them. */
  space(path: string): { bytes: number; inodes: number | undefined }
  isSameFile(path: string, otherPath: string): boolean
  /** Checks for a listener at a Unix socket without connecting to it. */
  isListening(path: string): boolean
}

export const linuxDiagnosis: Diagnosis = {
  features: probeFeatures,
  release,
  selfTest,
  findProgram: (program) => findProgram(program, SYSTEM_PATH),

  space(path) {
    const { bsize, bavail, files, ffree } = fs.statfsSync(path)
    return { bytes: bsize * bavail, inodes: files === 0 ? undefined : ffree }
  },

  isSameFile: createNodeFiles(fs).isSame,
  isListening,
}

/** __SO_ACCEPTCON (include/uapi/linux/net.h) in /proc/net/unix: a process listens at the socket. */
const LISTENING_FLAG = 0x10000

// Num, RefCount, Protocol, Flags, Type, St, Inode, Path. A socket without a name has no path.
const UNIX_SOCKET_ROW = /^[0-9a-f]+: [0-9A-F]+ [0-9A-F]+ ([0-9A-F]+) [0-9A-F]+ [0-9A-F]+ +\d+ (\/.*)$/gm

/**
 * Checks for a listener at a Unix socket in the kernel's tables, without connecting. Reads the tables of this process's
 * network namespace and of the one of pid 1.
 * @param path may contain links, such as `/var/run`
 */
export function isListening(path: string): boolean {
  const target = tolerateSystemErrors(() => fs.statSync(path))
  if (target?.isSocket() !== true) return false
  return ['self', '1'].some((pid) => {
    const table = tolerateSystemErrors(() => fs.readFileSync(`/proc/${pid}/net/unix`, 'utf8')) ?? ''
    return [...table.matchAll(UNIX_SOCKET_ROW)].some(([, flags = '', bound = '']) => {
      if ((Number.parseInt(flags, 16) & LISTENING_FLAG) === 0) return false
      const socket = tolerateSystemErrors(() => fs.statSync(bound))
      return socket?.ino === target.ino && socket.dev === target.dev
    })
  })
}

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
const NO_DESCRIPTOR = 'no descriptor'

/** A kernel that has the call and its flags checks the descriptor next and returns EBADF. */
function expectBadDescriptor(call: () => void): void {
  tolerateErrno('EBADF', call)
}

const callMoveBeneath = () => attachTree(NO_HANDLE, NO_HANDLE, MOVE_MOUNT_BENEATH, NO_DESCRIPTOR)
const callFchmodat2 = () =>
  requireSuccess(fchmodat2(NO_HANDLE, putEmpty(), 0, AT_EMPTY_PATH), 'fchmodat2', NO_DESCRIPTOR)
const callListxattrat = () =>
  requireSuccess(listxattrat(NO_HANDLE, putName('x'), 0, DATA, 0), 'listxattrat', NO_DESCRIPTOR)

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
