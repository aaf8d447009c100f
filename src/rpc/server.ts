import type * as net from 'node:net'
import * as grpc from '@grpc/grpc-js'
import { formatError } from '../errors/refusal.ts'
import { acceptSocketPathAsAuthority } from './authority.ts'
import { listenOnPrivateSocket, type PrivateSocket } from './private-socket.ts'

/** An error of the request. The caller gets the status INVALID_ARGUMENT. */
export class InvalidArgumentError extends Error {}

/** A gRPC server on a private socket. */
export interface GrpcSocketServer extends Omit<PrivateSocket, 'close'> {
  /** Removes the socket, and waits for running calls for at most `graceMs`. */
  close(graceMs: number): Promise<void>
}

/**
 * Starts a server. Resolves once it accepts connections.
 * @throws as `listenOnPrivateSocket`
 */
export async function listenOnGrpcSocket(
  path: string,
  service: grpc.ServiceDefinition,
  handlers: grpc.UntypedServiceImplementation,
): Promise<GrpcSocketServer> {
  const server = new grpc.Server({ 'grpc.enable_channelz': 0 })
  server.addService(service, handlers)
  const injector = server.createConnectionInjector(grpc.ServerCredentials.createInsecure())
  const connections = new Set<net.Socket>()
  let listener: PrivateSocket
  try {
    listener = await listenOnPrivateSocket(path, (socket) => {
      connections.add(socket)
      socket.once('close', () => connections.delete(socket))
      injector.injectConnection(acceptSocketPathAsAuthority(socket))
    })
  } catch (error) {
    server.forceShutdown()
    throw error
  }
  return {
    path,
    inode: listener.inode,
    async close(graceMs) {
      const closed = listener.close()
      const timer = setTimeout(() => server.forceShutdown(), graceMs)
      await new Promise<void>((resolve) => server.tryShutdown(() => resolve()))
      clearTimeout(timer)
      server.forceShutdown()
      // The listener waits for every connection, also for those on which gRPC has received nothing yet.
      for (const socket of connections) socket.destroy()
      await closed
    },
  }
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
