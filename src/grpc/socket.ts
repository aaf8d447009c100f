import * as fs from 'node:fs'
import * as net from 'node:net'
import { nodeFs } from '../host/node-fs.ts'
import { isOwnersFile, openPathHandle, type PathHandle } from '../host/path-handle.ts'
import { SystemError } from '../host/system-error.ts'
import { type Parent, removeIn } from '../host/write-file.ts'

/** sockaddr_un: 108 bytes with the closing zero. modekeep needs none of them for a path, but kubelet and the runtimes do. */
export const MAX_SOCKET_PATH = 107

/** What a path names now, a link itself. @returns undefined where nothing is */
export function statPath(path: string): fs.BigIntStats | undefined {
  return fs.lstatSync(path, { bigint: true, throwIfNoEntry: false })
}

/** Whether nobody listens on a socket now. Another's is bound a moment before it listens, and looks dead then. */
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
 * Removes a socket of root, or of the user that modekeep runs as, on which nobody listens.
 * @param parent a directory in which others can exchange no name
 * @returns whether the name is free
 */
export async function removeStaleSocket(parent: Parent, name: string): Promise<boolean> {
  const path = parent.at(name)
  const found = statPath(path)
  if (found === undefined) return true
  if (!found.isSocket() || !isOwnersFile({ uid: Number(found.uid) }) || !(await isStaleSocket(path))) return false
  // Another server may have taken its place while the connection was tried.
  if (statPath(path)?.ino !== found.ino) return false
  removeIn(nodeFs, parent, name)
  return true
}

/**
 * Opens a socket to connect to. A connection by the handle's link reaches the socket that was checked, whatever has its
 * path by then.
 * @throws {SystemError} EPERM for a socket of another user than root and the one that modekeep runs as; ELOOP as
 *   `openPathHandle`
 */
export function openOwnSocket(path: string): PathHandle {
  const held = openPathHandle(nodeFs, path)
  if (isOwnersFile(nodeFs.fstatSync(held.fd))) return held
  held[Symbol.dispose]()
  throw new SystemError('connect', 'EPERM', path, 'it belongs to another user than root')
}
