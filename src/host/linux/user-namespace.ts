import { existsSync, openSync, writeFileSync } from 'node:fs'
import { errorCode, SystemError } from '../host.ts'
import { readText } from '../read-file.ts'
import { cloneUserNamespace, DATA, done, systemCall } from './kernel.ts'

const wait4 = systemCall('wait4')

/** Also waits for children that send no signal when they end. */
const WALL = 0x40000000

/** (gid_t)-1 names no group. */
const HIGHEST = 2 ** 32 - 2
const ALL = `0 0 ${HIGHEST + 1}\n`

/**
 * A user namespace that swaps two different groups and maps every other id onto itself.
 * @returns its file descriptor, the only thing that holds it: no process lives in it
 * @throws {SystemError} `clone` (ENOSPC: user.max_user_namespaces), or `uid_map`, `gid_map` (EPERM: the process is in a
 *   user namespace itself)
 */
export function openUserNamespace(one: number, other: number): number {
  const groups = swapMap(one, other)
  // It has its namespace in /proc until it is waited for; should this process die here, init waits for it.
  const child = done(cloneUserNamespace(), 'clone', 'a user namespace', limit)
  try {
    writeMap(child, 'uid_map', ALL)
    writeMap(child, 'gid_map', groups)
    return openSync(`/proc/${child}/ns/user`, 'r')
  } finally {
    done(wait4(child, DATA, WALL), 'wait4', String(child))
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
