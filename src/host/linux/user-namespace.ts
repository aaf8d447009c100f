import { existsSync, openSync, writeFileSync } from 'node:fs'
import { errorCode, SystemError } from '../host.ts'
import { formatIdRanges, type IdMap } from '../id-map.ts'
import { readText } from '../read-file.ts'
import { cloneUserNamespace, DATA, requireSuccess, systemCall } from './kernel.ts'

const wait4 = systemCall('wait4')

/** Also waits for children that send no signal when they end. */
const WALL = 0x40000000

/**
 * Creates a user namespace with the ids of a mount's map.
 * @returns its file descriptor, the only reference to it, because no process is in it
 * @throws {SystemError} `clone` (ENOSPC: user.max_user_namespaces), or `uid_map`, `gid_map` (EPERM: the process is in a
 * user namespace itself; EINVAL: see `describeIdMapFault`)
 */
export function openUserNamespace({ uids, gids }: IdMap): number {
  // The child has its namespace in /proc until it is waited for. If this process crashes here, init waits for it.
  const child = requireSuccess(cloneUserNamespace(), 'clone', 'a user namespace', describeLimit)
  try {
    writeMap(child, 'uid_map', formatIdRanges(uids))
    writeMap(child, 'gid_map', formatIdRanges(gids))
    return openSync(`/proc/${child}/ns/user`, 'r')
  } finally {
    requireSuccess(wait4(child, DATA, WALL), 'wait4', String(child))
  }
}

function describeLimit(): string {
  const path = '/proc/sys/user/max_user_namespaces'
  // A kernel without user namespaces does not have this file.
  return existsSync(path) ? `user.max_user_namespaces is ${readText(path).trim()}` : ''
}

function writeMap(pid: number, name: 'uid_map' | 'gid_map', map: string): void {
  try {
    writeFileSync(`/proc/${pid}/${name}`, map)
  } catch (error) {
    throw new SystemError(name, errorCode(error) ?? 'EIO', 'a user namespace')
  }
}
