import * as fs from 'node:fs'
import * as net from 'node:net'
import { basename, dirname } from 'node:path'
import { isOwnedByRootOrSelf, nodeFs, openPathHandle, type PathHandle } from '../kernel/path-handle.ts'
import { SystemError } from '../kernel/system-error.ts'
import { openGuardedParentDirectory, type ParentDirectory, removeInDirectory } from '../kernel/write-file.ts'

/** Limit of sockaddr_un: 108 bytes with the terminating zero. modekeep itself connects by short links, but kubelet and runtimes use the path. */
export const MAX_SOCKET_PATH_BYTES = 107

/** Stats a path without following a link. @returns undefined if it does not exist */
export function statSocketPath(path: string): fs.BigIntStats | undefined {
  return fs.lstatSync(path, { bigint: true, throwIfNoEntry: false })
}

/** Returns whether no process listens on a socket. A starting server binds a moment before it listens, and seems stale. */
export function isStaleSocket(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const connection = net.connect(path)
    connection.once('connect', () => {
      connection.destroy()
      resolve(false)
    })
    connection.once('error', (error: NodeJS.ErrnoException) => resolve(error.code === 'ECONNREFUSED'))
  })
}

/**
 * Removes a stale socket of root, or of the user that modekeep runs as.
 * @param parent a directory to which other users cannot write
 * @returns whether the name is unused now
 */
export async function removeStaleSocket(parent: ParentDirectory, name: string): Promise<boolean> {
  const path = parent.at(name)
  const stat = statSocketPath(path)
  if (stat === undefined) return true
  if (!stat.isSocket() || !isOwnedByRootOrSelf({ uid: Number(stat.uid) }) || !(await isStaleSocket(path))) return false
  // Another server may have replaced the socket during the connection attempt.
  if (statSocketPath(path)?.ino !== stat.ino) return false
  removeInDirectory(nodeFs, parent, name)
  return true
}

/** Like `removeStaleSocket`, by path. @throws {SystemError} as `openGuardedParentDirectory` */
export async function removeStaleSocketAt(path: string): Promise<boolean> {
  using parent = openGuardedParentDirectory(nodeFs, dirname(path))
  return await removeStaleSocket(parent, basename(path))
}

const SOCKET_CHECK_INTERVAL_MS = 10_000

/** Calls `onLost` each time that a socket is found removed or replaced: nobody can connect any more. */
export function watchForLostSocket<Socket extends { path: string; inode: bigint | undefined }>(
  sockets: readonly Socket[],
  onLost: (socket: Socket) => void,
): Disposable {
  const timer = setInterval(() => {
    const lost = sockets.find(({ path, inode }) => statSocketPath(path)?.ino !== inode)
    if (lost) onLost(lost)
  }, SOCKET_CHECK_INTERVAL_MS)
  return { [Symbol.dispose]: () => clearInterval(timer) }
}

/**
 * Opens a socket to connect to. A connection by the handle's link reaches the checked socket, even if its path was replaced.
 * @throws {SystemError} EPERM for a socket of a user other than root and the one that modekeep runs as; ELOOP as
 *   `openPathHandle`
 */
export function openTrustedSocket(path: string): PathHandle {
  const handle = openPathHandle(nodeFs, path)
  if (isOwnedByRootOrSelf(nodeFs.fstatSync(handle.fd))) return handle
  handle[Symbol.dispose]()
  throw new SystemError('connect', 'EPERM', path, 'it belongs to another user than root')
}
