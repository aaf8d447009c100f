import * as fs from 'node:fs'
import { constants, existsSync } from 'node:fs'
import { hostname, release } from 'node:os'
import { createNodeFiles } from '../administration.ts'
import { deferHandleClose, getErrno, type Handle, tolerateErrno } from '../host.ts'
import { createGroupSwapMap } from '../id-map.ts'
import { tolerateSystemErrors } from '../system-error.ts'
import { requestFileSystemUuid } from './file-system-id.ts'
import { linuxInodes } from './inodes.ts'
import {
  AT_EMPTY_PATH,
  AT_FDCWD,
  CALL_DATA_OFFSET,
  createSystemCall,
  requireCallSuccess,
  writeEmptyNameArgument,
  writeNameArgument,
} from './kernel.ts'
import { attachMountTree, linuxMounts, MOVE_MOUNT_BENEATH, openUserNamespace } from './mounts.ts'
import { closeDescriptor, deferDescriptorClose, openAt } from './open.ts'
import { findProgram, SYSTEM_PROGRAM_DIRECTORIES } from './programs.ts'
import { runSelfTest, type SelfTestResult } from './self-test.ts'
import { hasStatxField, STATX_MNT_ID, STATX_MNT_ID_UNIQUE } from './statx.ts'

/** Result of trying a kernel feature that modekeep uses. The trial changes nothing on the node. */
export interface KernelFeature {
  name: KernelFeatureName
  works: boolean
  /** The kernel's error if the feature does not work. */
  detail: string
  /** Its errno name. */
  errno?: string
}

export type KernelFeatureName =
  | 'open_tree'
  | 'fsopen'
  | 'mount_setattr'
  | 'statx mount ids'
  | 'openat2'
  | 'user namespace'
  | 'idmapped tmpfs'
  | 'MOVE_MOUNT_BENEATH'
  | 'fchmodat2'
  | 'unique mount ids'
  | 'FS_IOC_GETFSUUID'
  | 'listxattrat'

/** The queries about a node that only `doctor` and `support-bundle` make. */
export interface NodeDiagnosis {
  features(): KernelFeature[]
  /** Returns the running kernel's release, as uname(2) reports it. */
  release(): string
  /** Returns the node's name, as uname(2) reports it. */
  hostName(): string
  selfTest(): SelfTestResult[]
  /** @returns the program's path @throws {HelperError} naming the package that contains it */
  findProgram(program: string): string
  /** Returns the free space for root. `inodes` is undefined if the file system does not count them. */
  space(path: string): { bytes: number; inodes: number | undefined }
  isSameFile(path: string, otherPath: string): boolean
  /** Checks for a listener at a Unix socket without connecting to it. */
  isListening(path: string): boolean
}

export const linuxDiagnosis: NodeDiagnosis = {
  features: probeKernelFeatures,
  release,
  hostName: hostname,
  selfTest: runSelfTest,
  findProgram: (program) => findProgram(program, SYSTEM_PROGRAM_DIRECTORIES),

  space(path) {
    const { bsize, bavail, files, ffree } = fs.statfsSync(path)
    return { bytes: bsize * bavail, inodes: files === 0 ? undefined : ffree }
  },

  isSameFile: createNodeFiles(fs).isSame,
  isListening: hasSocketListener,
}

/** __SO_ACCEPTCON (include/uapi/linux/net.h) in /proc/net/unix: a process listens at the socket. */
const SOCKET_LISTENING_FLAG = 0x10000

// Num, RefCount, Protocol, Flags, Type, St, Inode, Path. A socket without a name has no path.
const UNIX_SOCKET_ROW = /^[0-9a-f]+: [0-9A-F]+ [0-9A-F]+ ([0-9A-F]+) [0-9A-F]+ [0-9A-F]+ +\d+ (\/.*)$/gm

/**
 * Checks for a listener at a Unix socket in the kernel's tables, without connecting. Reads the tables of this process's
 * network namespace and of the one of pid 1.
 * @param path may contain links, such as `/var/run`
 */
export function hasSocketListener(path: string): boolean {
  const target = tolerateSystemErrors(() => fs.statSync(path))
  if (target?.isSocket() !== true) return false
  return ['self', '1'].some((pid) => {
    const table = tolerateSystemErrors(() => fs.readFileSync(`/proc/${pid}/net/unix`, 'utf8')) ?? ''
    return [...table.matchAll(UNIX_SOCKET_ROW)].some(([, flags = '', bound = '']) => {
      if ((Number.parseInt(flags, 16) & SOCKET_LISTENING_FLAG) === 0) return false
      const socket = tolerateSystemErrors(() => fs.statSync(bound))
      return socket?.ino === target.ino && socket.dev === target.dev
    })
  })
}

const fchmodat2 = createSystemCall('fchmodat2')
const listxattrat = createSystemCall('listxattrat')

/** Makes each call once: on detached mounts without a path, on an invalid descriptor, or without changes. */
export function probeKernelFeatures(): KernelFeature[] {
  return [
    probeKernelFeature('open_tree', () => withRootHandle((root) => linuxInodes.close(linuxMounts.cloneTree(root)))),
    probeKernelFeature('fsopen', () => withDetachedTmpfs(() => {})),
    probeKernelFeature('mount_setattr', () =>
      withDetachedTmpfs((tree) => linuxMounts.setFlags(tree, { set: 0, clear: 0 })),
    ),
    probeKernelFeature('statx mount ids', () => assertStatxField(STATX_MNT_ID)),
    probeKernelFeature('openat2', () =>
      withRootHandle((root) => linuxInodes.close(linuxInodes.openBeneath(root, '.'))),
    ),
    probeKernelFeature('user namespace', () => closeDescriptor(openUserNamespace(createGroupSwapMap(0, 1)))),
    probeKernelFeature('idmapped tmpfs', () =>
      withDetachedTmpfs((tree) => linuxMounts.mapIds(tree, createGroupSwapMap(0, 1))),
    ),
    probeKernelFeature('MOVE_MOUNT_BENEATH', () => expectBadDescriptor(callMoveBeneath)),
    probeKernelFeature('fchmodat2', () => expectBadDescriptor(callFchmodat2)),
    probeKernelFeature('unique mount ids', () => assertStatxField(STATX_MNT_ID_UNIQUE)),
    probeKernelFeature('FS_IOC_GETFSUUID', requestAnyUuid),
    probeKernelFeature('listxattrat', () => expectBadDescriptor(callListxattrat)),
  ]
}

function probeKernelFeature(name: KernelFeatureName, attempt: () => void): KernelFeature {
  try {
    attempt()
    return { name, works: true, detail: '' }
  } catch (error) {
    const errno = getErrno(error)
    if (errno === undefined) throw error
    return { name, works: false, detail: (error as Error).message, errno }
  }
}

function withRootHandle(use: (root: Handle) => void): void {
  const root = linuxInodes.openTrusted('/')
  using _ = deferHandleClose(linuxInodes, root)
  use(root)
}

function withDetachedTmpfs(use: (tree: Handle) => void): void {
  const tree = linuxMounts.createTree('tmpfs', ['size=64k'])
  using _ = deferHandleClose(linuxInodes, tree)
  use(tree)
}

const INVALID_HANDLE = -1 as Handle
const INVALID_DESCRIPTOR_TEXT = 'no descriptor'

/** A kernel that has the call and its flags checks the descriptor next and returns EBADF. */
function expectBadDescriptor(call: () => void): void {
  tolerateErrno('EBADF', call)
}

const callMoveBeneath = () =>
  attachMountTree(INVALID_HANDLE, INVALID_HANDLE, MOVE_MOUNT_BENEATH, INVALID_DESCRIPTOR_TEXT)
const callFchmodat2 = () =>
  requireCallSuccess(
    fchmodat2(INVALID_HANDLE, writeEmptyNameArgument(), 0, AT_EMPTY_PATH),
    'fchmodat2',
    INVALID_DESCRIPTOR_TEXT,
  )
const callListxattrat = () =>
  requireCallSuccess(
    listxattrat(INVALID_HANDLE, writeNameArgument('x'), 0, CALL_DATA_OFFSET, 0),
    'listxattrat',
    INVALID_DESCRIPTOR_TEXT,
  )

function assertStatxField(bit: number): void {
  withRootHandle((root) => {
    if (hasStatxField(root, bit)) return
    throw Object.assign(new Error('statx does not tell them'), { code: 'ENOTSUP' })
  })
}

/** Some file systems have no UUID. One that has a UUID returns it, and a kernel without the request returns ENOTTY. */
function requestAnyUuid(): void {
  let lastError: unknown
  for (const path of ['/', '/tmp', '/var/lib', '/dev/shm'].filter((path) => existsSync(path))) {
    try {
      const fd = openAt(AT_FDCWD, path, constants.O_RDONLY | constants.O_DIRECTORY)
      using _ = deferDescriptorClose(fd)
      requestFileSystemUuid(fd, path)
      return
    } catch (error) {
      lastError = error
    }
  }
  throw lastError
}
