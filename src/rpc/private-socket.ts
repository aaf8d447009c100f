import { once } from 'node:events'
import * as net from 'node:net'
import { basename, dirname } from 'node:path'
import { readPeer, type SocketPeer } from '../kernel/linux/socket-peer.ts'
import { nodeFs, showUserPaths } from '../kernel/path-handle.ts'
import { openGuardedParentDirectory } from '../kernel/write-file.ts'
import { statSocketPath } from './socket.ts'

const OWNER_ONLY_UMASK = 0o077

/** A unix socket to which only its own user and root can connect. */
export interface PrivateSocket {
  readonly path: string
  readonly inode: bigint | undefined
  /** Removes the socket. Resolves when all connections have ended too. */
  close(): Promise<void>
}

/**
 * Listens on a unix socket, which is bound and removed below its directory's handle. Resolves once it accepts connections.
 * @param onConnection is called for each connection of a trusted peer; others are closed
 * @throws {SystemError} as `openGuardedParentDirectory`; system errors, after which no socket is left
 */
export async function listenOnPrivateSocket(
  path: string,
  onConnection: (socket: net.Socket, peer: SocketPeer) => void,
  options: net.ServerOpts = {},
): Promise<PrivateSocket> {
  // Open until the listener is closed, because closing removes the socket by the path that it was bound with.
  const parent = openGuardedParentDirectory(nodeFs, dirname(path))
  const bound = parent.at(basename(path))
  const listener = net.createServer(options, (socket) => {
    // Node has no public way to read the descriptor.
    const { _handle } = socket as { _handle?: { fd?: number } }
    const peer = readPeer(_handle?.fd ?? -1)
    // Other users can connect if the socket's mode was changed.
    if (peer !== undefined && (peer.user === 0 || peer.user === process.geteuid?.())) onConnection(socket, peer)
    else socket.destroy()
  })
  try {
    // listen creates the socket with the umask's mode, so that other users can connect at no time.
    const umask = process.umask(OWNER_ONLY_UMASK)
    listener.listen(bound)
    process.umask(umask)
    await once(listener, 'listening')
  } catch (error) {
    listener.close()
    parent[Symbol.dispose]()
    throw showUserPaths(error, () => path)
  }
  listener.on('error', () => {})
  return {
    path,
    inode: statSocketPath(bound)?.ino,
    async close() {
      await new Promise((resolve) => listener.close(resolve))
      parent[Symbol.dispose]()
    },
  }
}
