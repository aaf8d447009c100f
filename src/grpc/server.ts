import * as net from 'node:net'
import * as grpc from '@grpc/grpc-js'
import { messageOf } from '../refusal/refusal.ts'
import { acceptPathAsAuthority } from './authority.ts'
import { InvalidArgument } from './method.ts'
import { lookAt } from './socket.ts'

const OTHERS = 0o077

/** A gRPC server on a unix socket to which only its own user can connect. */
export class SocketServer {
  readonly path: string
  readonly inode: bigint | undefined
  readonly #listener: net.Server
  readonly #server: grpc.Server

  private constructor(path: string, listener: net.Server, server: grpc.Server) {
    this.path = path
    this.inode = lookAt(path)?.ino
    this.#listener = listener
    this.#server = server
  }

  /** Resolves once connections are accepted. @throws the system's error, with nothing left behind */
  static async listen(
    path: string,
    service: grpc.ServiceDefinition,
    handlers: grpc.UntypedServiceImplementation,
  ): Promise<SocketServer> {
    const server = new grpc.Server({ 'grpc.enable_channelz': 0 })
    server.addService(service, handlers)
    const injector = server.createConnectionInjector(grpc.ServerCredentials.createInsecure())
    const listener = net.createServer((socket) => injector.injectConnection(acceptPathAsAuthority(socket)))
    try {
      await bind(listener, path)
      listener.on('error', () => {})
      return new SocketServer(path, listener, server)
    } catch (error) {
      listener.close()
      server.forceShutdown()
      throw error
    }
  }

  /** Waits for calls under way, at most this long; the socket is gone from its directory then. */
  async close(graceMs: number): Promise<void> {
    const closed = new Promise((resolve) => this.#listener.close(resolve))
    const timer = setTimeout(() => this.#server.forceShutdown(), graceMs)
    await new Promise<void>((resolve) => this.#server.tryShutdown(() => resolve()))
    clearTimeout(timer)
    this.#server.forceShutdown()
    await closed
  }
}

function bind(listener: net.Server, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    listener.once('error', reject)
    // The socket is made within listen, with the mode that the umask leaves: there is no moment in which others may connect.
    const umask = process.umask(OTHERS)
    listener.listen(path, () => resolve())
    process.umask(umask)
  })
}

/**
 * A call with one request and one answer.
 * @param refused is told of each call that fails
 */
export function unary<I, O>(
  name: string,
  reply: (request: I) => O,
  refused: (method: string, message: string) => void,
): grpc.handleUnaryCall<I, O> {
  return ({ request }, answer) => {
    try {
      answer(null, reply(request))
    } catch (error) {
      const message = messageOf(error)
      refused(name, message)
      answer({ code: error instanceof InvalidArgument ? grpc.status.INVALID_ARGUMENT : grpc.status.INTERNAL, message })
    }
  }
}
