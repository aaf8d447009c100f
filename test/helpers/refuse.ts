import { MOVE_MOUNT_BENEATH } from '../../src/kernel/linux/mounts.ts'
import { compile } from '../race/compile.ts'
import { requireProgram } from './needs.ts'

const ENOSYS = 38
const EINVAL = 22
const ENOTTY = 25

/** The numbers of newer calls are the same on every processor. */
const CALLS = {
  open_tree: 428,
  fsopen: 430,
  openat2: 437,
  mount_setattr: 442,
  fchmodat2: 452,
  listxattrat: 465,
} as const
const SYS_MOVE_MOUNT = 429
const SYS_IOCTL = process.arch === 'arm64' ? 29 : 16
/** _IOR(0x15, 0, struct fsuuid2) */
const FS_IOC_GETFSUUID = 0x80111500

/** Flags and commands of older calls, as `NUMBER:ARGUMENT:BITS=ERRNO`. */
const FLAGS = {
  MOVE_MOUNT_BENEATH: `${SYS_MOVE_MOUNT}:4:${MOVE_MOUNT_BENEATH.toString(16)}=${EINVAL}`,
  EXT4_IOC_GETFSUUID: `${SYS_IOCTL}:1:8008662c=${ENOTTY}`,
  XFS_IOC_FSGEOMETRY_V1: `${SYS_IOCTL}:1:80705864=${ENOTTY}`,
  BTRFS_IOC_FS_INFO: `${SYS_IOCTL}:1:8400941f=${ENOTTY}`,
  FS_IOC_GETFSUUID: `${SYS_IOCTL}:1:${FS_IOC_GETFSUUID.toString(16)}=${ENOTTY}`,
} as const

/** Every request that reports the UUID of a file system. */
export const UUID_REQUESTS = [
  'FS_IOC_GETFSUUID',
  'EXT4_IOC_GETFSUUID',
  'XFS_IOC_FSGEOMETRY_V1',
  'BTRFS_IOC_FS_INFO',
] as const

/** A system call or a part of one, as an older kernel does not have it. */
export type Lacking = keyof typeof CALLS | keyof typeof FLAGS

/**
 * A command in front of another, which then runs as on a kernel that lacks these; for the test that is running.
 * @param errno what calls answer: kernels say ENOSYS, seccomp filters of old container runtimes EPERM
 */
export function refuseCalls(what: readonly Lacking[], errno = ENOSYS): string[] {
  const calls = Object.entries(CALLS).map(([name, number]) => [name, `${number}=${errno}`] as const)
  const rules = new Map<string, string>([...calls, ...Object.entries(FLAGS)])
  return [compile('helpers/refuse.c'), ...what.map((name) => rules.get(name) ?? ''), '--']
}

/** A command in front of another, for which reads of a device fail; for the test that is running. */
export function failReads(device: string): string[] {
  const only = ['-P', device, '-e', 'trace=pread64', '-e', 'inject=pread64:error=EIO']
  return [requireProgram('strace'), '-f', '-qq', '-o', '/dev/null', ...only]
}
