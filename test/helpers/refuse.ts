import {
  FS_IOC_GETFSUUID,
  MOVE_MOUNT_BENEATH,
  SYS_FCHMODAT2,
  SYS_FSOPEN,
  SYS_LISTXATTRAT,
  SYS_MOUNT_SETATTR,
  SYS_MOVE_MOUNT,
  SYS_OPEN_TREE,
  SYS_OPENAT2,
} from '../../src/host/linux/constants.ts'
import { compile } from '../race/compile.ts'

const ENOSYS = 38
const EINVAL = 22
const ENOTTY = 25
const SYS_IOCTL = process.arch === 'arm64' ? 29n : 16n

const CALLS = {
  open_tree: SYS_OPEN_TREE,
  fsopen: SYS_FSOPEN,
  openat2: SYS_OPENAT2,
  mount_setattr: SYS_MOUNT_SETATTR,
  fchmodat2: SYS_FCHMODAT2,
  listxattrat: SYS_LISTXATTRAT,
} as const

/** Flags and commands of older calls, as `NUMBER:ARGUMENT:BITS=ERRNO`. */
const FLAGS = {
  MOVE_MOUNT_BENEATH: `${SYS_MOVE_MOUNT}:4:${MOVE_MOUNT_BENEATH.toString(16)}=${EINVAL}`,
  FS_IOC_GETFSUUID: `${SYS_IOCTL}:1:${FS_IOC_GETFSUUID.toString(16)}=${ENOTTY}`,
} as const

/** A system call or a part of one, as an older kernel does not have it. */
export type Lacking = keyof typeof CALLS | keyof typeof FLAGS

/**
 * A command in front of another, which then runs as on a kernel that lacks these; for the test that is running.
 * @param errno what calls answer: kernels say ENOSYS, seccomp filters of old container runtimes EPERM
 */
export function lacking(what: readonly Lacking[], errno = ENOSYS): string[] {
  const calls = Object.entries(CALLS).map(([name, number]) => [name, `${number}=${errno}`] as const)
  const rules = new Map<string, string>([...calls, ...Object.entries(FLAGS)])
  return [compile('helpers/refuse.c'), ...what.map((name) => rules.get(name) ?? ''), '--']
}
