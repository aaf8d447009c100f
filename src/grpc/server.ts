import { once } from 'node:events'
import * as net from 'node:net'
import { basename, dirname } from 'node:path'
import * as grpc from '@grpc/grpc-js'
import { peerUser } from '../host/linux/peer.ts'
import { nodeFs } from '../host/node-fs.ts'
import { withKnownPath } from '../host/path-handle.ts'
import { openGuardedParent } from '../host/write-file.ts'
import { messageOf } from '../refusal/refusal.ts'
import { acceptPathAsAuthority } from './authority.ts'
import { statPath } from './socket.ts'

const OTHERS_MASK = 0o077

/** A request that names what is not there, or asks for what cannot be: INVALID_ARGUMENT for the caller. */
export class InvalidArgument extends Error {}

/** A gRPC server on a unix socket to which only its own user can connect, and root. */
export interface SocketServer {
  readonly path: string
  readonly inode: bigint | undefined
  /** Waits for calls under way, at most this long; the socket is gone from its directory then. */
  close(graceMs: number): Promise<void>
}

/**
 * Resolves once connections are accepted. The socket is bound, and removed, below its directory's handle.
 * @throws {SystemError} as `openGuardedParent`; the system's error, with nothing left behind
 */
export async function listen(
  path: string,
  service: grpc.ServiceDefinition,
  handlers: grpc.UntypedServiceImplementation,
): Promise<SocketServer> {
  // Held until the listener is closed, which removes the socket by the path that it was bound with.
  const parent = openGuardedParent(nodeFs, dirname(path))
  const bound = parent.at(basename(path))
  const server = new grpc.Server({ 'grpc.enable_channelz': 0 })
  server.addService(service, handlers)
  const injector = server.createConnectionInjector(grpc.ServerCredentials.createInsecure())
  const connections = new Set<net.Socket>()
  const listener = net.createServer((socket) => {
    if (!isTrusted(socket)) return void socket.destroy()
    connections.add(socket)
    socket.once('close', () => connections.delete(socket))
    injector.injectConnection(acceptPathAsAuthority(socket))
  })
  try {
    // The socket is made within listen, with the mode that the umask leaves: there is no moment for others to connect.
    const umask = process.umask(OTHERS_MASK)
    listener.listen(bound)
    process.umask(umask)
    await once(listener, 'listening')
  } catch (error) {
    listener.close()
    server.forceShutdown()
    parent[Symbol.dispose]()
    throw withKnownPath(error, bound, path)
  }
  listener.on('error', () => {})
  return {
    path,
    inode: statPath(bound)?.ino,
    async close(graceMs) {
      const closed = new Promise((resolve) => listener.close(resolve))
      const timer = setTimeout(() => server.forceShutdown(), graceMs)
      await new Promise<void>((resolve) => server.tryShutdown(() => resolve()))
      clearTimeout(timer)
      server.forceShutdown()
      // gRPC knows nothing of a client that has not spoken yet, and the listener waits for each.
      for (const socket of connections) socket.destroy()
      await closed
      parent[Symbol.dispose]()
    },
  }
}

/** Whether root has connected, or the user of this process. Anybody else can where the socket's mode was opened. */
function isTrusted(socket: net.Socket): boolean {
  // Node tells the descriptor in no other way.
  const { _handle } = socket as { _handle?: { fd?: number } }
  const user = peerUser(_handle?.fd ?? -1)
  return user !== undefined && (user === 0 || user === process.geteuid?.())
}

type UnaryReplies<S> = {
  [N in keyof S]?: S[N] extends grpc.MethodDefinition<infer I, infer O> ? (request: I) => O : never
}

/** Handlers of calls with one request and one answer. @param refused is told of each call that fails */
export function createUnaryHandlers<S extends grpc.ServiceDefinition>(
  refused: (method: string, message: string) => void,
  replies: UnaryReplies<S>,
): grpc.UntypedServiceImplementation {
  const handler = (name: string, reply: (request: unknown) => unknown): grpc.handleUnaryCall<unknown, unknown> => {
    return ({ request }, answer) => {
      try {
        answer(null, reply(request))
      } catch (error) {
        const message = messageOf(error)
        refused(name, message)
        answer({
          code: error instanceof InvalidArgument ? grpc.status.INVALID_ARGUMENT : grpc.status.INTERNAL,
          message,
        })
      }
    }
  }
  return Object.fromEntries(Object.entries(replies).map(([name, reply]) => [name, handler(name, reply)]))
}
