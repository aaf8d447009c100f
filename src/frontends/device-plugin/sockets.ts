import * as fs from 'node:fs'
import { join } from 'node:path'
import { nodeFs } from '../../kernel/path-handle.ts'
import { openGuardedParentDirectory } from '../../kernel/write-file.ts'
import { removeStaleSocket, statSocketPath } from '../../rpc/socket.ts'
import type { ObservedPluginSockets } from './decide.ts'

export const KUBELET_SOCKET_NAME = 'kubelet.sock'

/** Returns whether a name is that of a socket of this plugin, running or killed. */
export const isDevicePluginSocketName = (name: string) => DEVICE_PLUGIN_SOCKET_PATTERN.test(name)

const DEVICE_PLUGIN_SOCKET_PATTERN = /^modekeep-fuse-\d+-[0-9a-z]+\.sock$/

/** Younger sockets are kept, because another plugin may have bound one and not yet listen on it. */
const MIN_STALE_SOCKET_AGE_MS = 60_000

/** Limit in bytes: the process id has up to 7 digits, the time 8 characters and the serial number 3. */
export const MAX_SOCKET_NAME_BYTES = 38

let lastSocketNumber = 0

/** Creates a new name each time, because kubelet may still have a connection to an older socket of the same name. */
export function createPluginSocketName(pid: number, nowMs: number): string {
  lastSocketNumber += 1
  return `modekeep-fuse-${pid}-${nowMs.toString(36)}${lastSocketNumber.toString(36)}.sock`
}

/** @param own path and inode of the plugin's socket */
export function observePluginSockets(
  directory: string,
  own: { path: string; inode: bigint | undefined } | undefined,
): ObservedPluginSockets {
  const stat = statSocketPath(directory)
  if (stat === undefined) return { directory: 'absent', kubelet: undefined, own: false }
  const kubelet = statSocketPath(join(directory, KUBELET_SOCKET_NAME))
  return {
    directory: stat.nlink === 0n ? 'detached' : 'present',
    // Some file systems reuse inode numbers at once.
    kubelet: kubelet?.isSocket() ? `${kubelet.ino}:${kubelet.ctimeNs}` : undefined,
    own: own !== undefined && statSocketPath(own.path)?.ino === own.inode,
  }
}

/** Removes sockets that killed plugins left. @returns their names @throws {SystemError} as `openGuardedParentDirectory` */
export async function removeStalePluginSockets(directory: string, nowMs: number): Promise<string[]> {
  using parent = openGuardedParentDirectory(nodeFs, directory)
  const names = fs.readdirSync(parent.at('.')).filter(isDevicePluginSocketName)
  const removed: string[] = []
  for (const name of names) {
    const stat = statSocketPath(parent.at(name))
    if (stat === undefined || nowMs - Number(stat.mtimeMs) < MIN_STALE_SOCKET_AGE_MS) continue
    if (await removeStaleSocket(parent, name)) removed.push(name)
  }
  return removed
}
