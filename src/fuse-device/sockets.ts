import * as fs from 'node:fs'
import { join } from 'node:path'
import { removeStaleSocket, statPath } from '../grpc/socket.ts'
import { nodeFs } from '../host/node-fs.ts'
import { openGuardedParent } from '../host/write-file.ts'
import type { ObservedSockets } from './decide.ts'

export const KUBELET_SOCKET = 'kubelet.sock'

/** Sockets of plugins of this kind, of those that were killed too. */
export const isPluginSocket = (name: string) => PLUGIN_SOCKET.test(name)

const PLUGIN_SOCKET = /^modekeep-fuse-\d+-[0-9a-z]+\.sock$/

/** Another plugin's socket is bound for a moment before it listens. */
const MIN_STALE_AGE_MS = 60_000

/** A name's bytes at most: its process id has 7 digits, its time 8 characters and its serial number 3. */
export const MAX_SOCKET_NAME = 38

let serial = 0

/** A new name each time: kubelet may still hold a connection to an older socket of the same name. @param now ms */
export function createSocketName(pid: number, now: number): string {
  serial += 1
  return `modekeep-fuse-${pid}-${now.toString(36)}${serial.toString(36)}.sock`
}

/** @param own path and inode of the plugin's socket */
export function observeSockets(
  directory: string,
  own: { path: string; inode: bigint | undefined } | undefined,
): ObservedSockets {
  const place = statPath(directory)
  if (place === undefined) return { directory: 'absent', kubelet: undefined, own: false }
  const kubelet = statPath(join(directory, KUBELET_SOCKET))
  return {
    directory: place.nlink === 0n ? 'detached' : 'present',
    // Inode numbers are used again at once, on some file systems.
    kubelet: kubelet?.isSocket() ? `${kubelet.ino}:${kubelet.ctimeNs}` : undefined,
    own: own !== undefined && statPath(own.path)?.ino === own.inode,
  }
}

/** Removes sockets that a killed plugin of this kind left. @returns their names. @throws {SystemError} as `openGuardedParent` */
export async function removeStaleSockets(directory: string, now: number): Promise<string[]> {
  using parent = openGuardedParent(nodeFs, directory)
  const names = fs.readdirSync(parent.at('.')).filter(isPluginSocket)
  const removed: string[] = []
  for (const name of names) {
    const stat = statPath(parent.at(name))
    if (stat === undefined || now - Number(stat.mtimeMs) < MIN_STALE_AGE_MS) continue
    if (await removeStaleSocket(parent, name)) removed.push(name)
  }
  return removed
}
