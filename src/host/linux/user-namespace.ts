import { existsSync, openSync, writeFileSync } from 'node:fs'
import { errorCode, SystemError } from '../host.ts'
import { readText } from '../read-text.ts'
import { CLONE_FILES, CLONE_NEWUSER, CLONE_VFORK, CLONE_VM, WALL } from './constants.ts'
import { address, libcOfProcesses, run, view } from './libc.ts'

/** (gid_t)-1 names no group. */
const HIGHEST = 2 ** 32 - 2
const ALL = `0 0 ${HIGHEST + 1}\n`
const CHILD = CLONE_NEWUSER | CLONE_VM | CLONE_FILES | CLONE_VFORK

type Processes = ReturnType<typeof libcOfProcesses>
let processes: Processes | undefined

/**
 * A user namespace that swaps two different groups and maps every other id onto itself.
 * @returns its file descriptor, the only thing that holds it: no process lives in it
 * @throws {SystemError} `clone` (ENOSPC: user.max_user_namespaces), or `uid_map`, `gid_map` (EPERM: this process is in a
 *   user namespace itself)
 */
export function openUserNamespace(one: number, other: number): number {
  const groups = swapMap(one, other)
  processes ??= libcOfProcesses()
  const { waitpid } = processes
  const child = cloneEnded(processes)
  try {
    writeMap(child, 'uid_map', ALL)
    writeMap(child, 'gid_map', groups)
    return openSync(`/proc/${child}/ns/user`, 'r')
  } finally {
    run('waitpid', String(child), () => waitpid(child, address('struct'), WALL))
  }
}

/** The lines of a gid_map, user_namespaces(7). */
export function swapMap(one: number, other: number): string {
  const low = Math.min(one, other)
  const high = Math.max(one, other)
  if (low === high || low < 0 || high > HIGHEST) throw new Error(`no two groups to swap: ${one} and ${other}`)
  const extents = [
    [0, 0, low],
    [low, high, 1],
    [low + 1, low + 1, high - low - 1],
    [high, low, 1],
    [high + 1, high + 1, HIGHEST - high],
  ]
  return extents
    .filter(([, , count]) => count !== 0)
    .map((extent) => `${extent.join(' ')}\n`)
    .join('')
}

/**
 * A child in a new user namespace that has nothing left to run when clone(2) returns: it is a zombie or about to be one,
 * and has its namespace in /proc until it is waited for. It never has copies of this process's file descriptors, whose
 * locks could outlive it; should this process die here, init waits for the child. It sends no signal, so that no handler of
 * SIGCHLD matters.
 */
function cloneEnded({ clone, exit }: Processes): number {
  // At its end, on a boundary of 16 bytes: a stack grows downwards.
  const stack = (address('stack') + BigInt(view('stack').length)) & ~15n
  // A clone that failed has made no child, so it may be repeated like other calls.
  return run('clone', 'a user namespace', () => clone(exit, stack, CHILD, 0n), limit)
}

function limit(): string {
  const path = '/proc/sys/user/max_user_namespaces'
  // A kernel without user namespaces has none.
  return existsSync(path) ? `user.max_user_namespaces is ${readText(path).trim()}` : ''
}

function writeMap(pid: number, name: 'uid_map' | 'gid_map', map: string): void {
  try {
    writeFileSync(`/proc/${pid}/${name}`, map)
  } catch (error) {
    throw new SystemError(name, errorCode(error) ?? 'EIO', 'a user namespace')
  }
}
