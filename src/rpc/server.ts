import { once } from 'node:events'
import * as net from 'node:net'
import { basename, dirname } from 'node:path'
import * as grpc from '@grpc/grpc-js'
import { formatError } from '../errors/refusal.ts'
import { readPeerUser } from '../kernel/linux/processes.ts'
import { nodeFs, showUserPaths } from '../kernel/path-handle.ts'
import { openGuardedParentDirectory } from '../kernel/write-file.ts'
import { acceptSocketPathAsAuthority } from './authority.ts'
import { statSocketPath } from './socket.ts'

const OWNER_ONLY_UMASK = 0o077

/** An error of the request. The caller gets the status INVALID_ARGUMENT. */
export class InvalidArgumentError extends Error {}

/** A gRPC server on a unix socket to which only its own user and root can connect. */
export interface GrpcSocketServer {
  readonly path: string
  readonly inode: bigint | undefined
  /** Removes the socket, and waits for running calls for at most `graceMs`. */
  close(graceMs: number): Promise<void>
}

/**
 * Starts a server. Resolves once it accepts connections. The socket is bound and removed below its directory's handle.
 * @throws {SystemError} as `openGuardedParentDirectory`; system errors, after which no socket is left
 */
export async function listenOnGrpcSocket(
  path: string,
  service: grpc.ServiceDefinition,
  handlers: grpc.UntypedServiceImplementation,
): Promise<GrpcSocketServer> {
  // Open until the listener is closed, because closing removes the socket by the path that it was bound with.
  const parent = openGuardedParentDirectory(nodeFs, dirname(path))
  const bound = parent.at(basename(path))
  const server = new grpc.Server({ 'grpc.enable_channelz': 0 })
  server.addService(service, handlers)
  const injector = server.createConnectionInjector(grpc.ServerCredentials.createInsecure())
  const connections = new Set<net.Socket>()
  const listener = net.createServer((socket) => {
    if (!isTrustedSocketPeer(socket)) return void socket.destroy()
    connections.add(socket)
    socket.once('close', () => connections.delete(socket))
    injector.injectConnection(acceptSocketPathAsAuthority(socket))
  })
  try {
    // listen creates the socket with the umask's mode, so that other users can connect at no time.
    const umask = process.umask(OWNER_ONLY_UMASK)
    listener.listen(bound)
    process.umask(umask)
    await once(listener, 'listening')
  } catch (error) {
    listener.close()
    server.forceShutdown()
    parent[Symbol.dispose]()
    throw showUserPaths(error, () => path)
  }
  listener.on('error', () => {})
  return {
    path,
    inode: statSocketPath(bound)?.ino,
    async close(graceMs) {
      const closed = new Promise((resolve) => listener.close(resolve))
      const timer = setTimeout(() => server.forceShutdown(), graceMs)
      await new Promise<void>((resolve) => server.tryShutdown(() => resolve()))
      clearTimeout(timer)
      server.forceShutdown()
      // The listener waits for every connection, also for those on which gRPC has received nothing yet.
      for (const socket of connections) socket.destroy()
      await closed
      parent[Symbol.dispose]()
    },
  }
}

/** Returns whether the peer is root or this process's user. Other users can connect if the socket's mode was changed. */
function isTrustedSocketPeer(socket: net.Socket): boolean {
  // Node has no public way to read the descriptor.
  const { _handle } = socket as { _handle?: { fd?: number } }
  const user = readPeerUser(_handle?.fd ?? -1)
  return user !== undefined && (user === 0 || user === process.geteuid?.())
}

/** Facts of a call in addition to its request. */
interface UnaryCallContext {
  readonly deadline: Date | number
  /** User agent, such as `grpc-go/1.27.1`; '' if the client sends none. */
  readonly client: string
}

type UnaryReplyFunctions<S> = {
  [N in keyof S]?: S[N] extends grpc.MethodDefinition<infer I, infer O>
    ? (request: I, call: UnaryCallContext) => O | Promise<O>
    : never
}

interface GrpcCallError {
  readonly code: keyof typeof grpc.status
  readonly message: string
}

/**
 * Creates handlers of calls with one request and one answer. A reply continues if its caller disconnects.
 * @param refused is called for each call that fails
 * @param convertError converts what a reply throws
 */
export function createUnaryCallHandlers<S extends grpc.ServiceDefinition>(
  refused: (method: string, message: string, code: GrpcCallError['code']) => void,
  replies: UnaryReplyFunctions<S>,
  convertError: (error: unknown) => GrpcCallError = convertInvalidArgumentError,
): grpc.UntypedServiceImplementation {
  type Reply = (request: unknown, call: UnaryCallContext) => unknown
  const createHandler = (name: string, reply: Reply): grpc.handleUnaryCall<unknown, unknown> => {
    return async (call, answer) => {
      try {
        const client = String(call.metadata.get('user-agent')[0] ?? '')
        answer(null, await reply(call.request, { deadline: call.getDeadline(), client }))
      } catch (error) {
        const { code, message } = convertError(error)
        refused(name, message, code)
        answer({ code: grpc.status[code], message })
      }
    }
  }
  return Object.fromEntries(Object.entries(replies).map(([name, reply]) => [name, createHandler(name, reply)]))
}

function convertInvalidArgumentError(error: unknown): GrpcCallError {
  return { code: error instanceof InvalidArgumentError ? 'INVALID_ARGUMENT' : 'INTERNAL', message: formatError(error) }
}
