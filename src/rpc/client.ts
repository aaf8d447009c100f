import type { Socket } from 'node:net'
import * as grpc from '@grpc/grpc-js'
import { type ChannelCredentials, credentials } from '@grpc/grpc-js'
import { nodeFs, type PathHandle } from '../kernel/path-handle.ts'
import { openTrustedSocket } from './socket.ts'

/** Calls methods over a unix socket. Connects at the first call, and reconnects after the connection has ended. */
export class GrpcClient implements Disposable {
  readonly #path: string
  readonly #socket: PathHandle
  readonly #connections = new GrpcClientConnections()
  readonly #client: grpc.Client

  /** @throws {SystemError} as `openTrustedSocket` */
  constructor(path: string) {
    this.#path = path
    this.#socket = openTrustedSocket(path)
    this.#client = new grpc.Client(`unix:${this.#socket.link}`, this.#connections.credentials, {
      // Handles are reused, so another client's connection to the same link may lead to another socket.
      'grpc.use_local_subchannel_pool': 1,
      'grpc.default_authority': 'localhost',
      'grpc.enable_channelz': 0,
      // Limit of kubelet and containerd: lists contain the annotations of all pods.
      'grpc.max_receive_message_length': 16 << 20,
      // The servers on these sockets restart within a moment, or not at all.
      'grpc.initial_reconnect_backoff_ms': 100,
      'grpc.max_reconnect_backoff_ms': 1000,
    })
  }

  /** The socket was removed: a restarted server listens on another one. */
  get isStale(): boolean {
    return nodeFs.fstatSync(this.#socket.fd).nlink === 0
  }

  /** @throws {grpc.ServiceError} if the call fails, no answer comes in time, or `stop` aborts */
  call<Request, Reply>(
    method: grpc.MethodDefinition<Request, Reply>,
    request: Request,
    deadlineMs: number,
    stop?: AbortSignal,
  ): Promise<Reply> {
    const { promise, resolve, reject } = Promise.withResolvers<Reply>()
    const call = this.#client.makeUnaryRequest(
      method.path,
      method.requestSerialize,
      method.responseDeserialize,
      request,
      { deadline: Date.now() + deadlineMs },
      (error, reply) => {
        if (error === null && reply !== undefined) resolve(reply)
        else reject(error && this.#showPath(error))
      },
    )
    stop?.addEventListener('abort', () => call.cancel(), { once: true })
    return promise
  }

  /** gRPC's text has the path of the socket's handle, and gRPC has it in no field. */
  #showPath(error: grpc.ServiceError): grpc.ServiceError {
    const details = error.details.replaceAll(this.#socket.link, () => this.#path)
    return Object.assign(error, { details, message: `${error.code} ${grpc.status[error.code]}: ${details}` })
  }

  [Symbol.dispose](): void {
    this.#client.close()
    this.#connections[Symbol.dispose]()
    this.#socket[Symbol.dispose]()
  }
}

/**
 * Makes one call over a unix socket, on a connection of its own.
 * @param stop aborts the call
 * @throws {SystemError} as `openTrustedSocket`; {grpc.ServiceError} if the call fails or no answer comes in time
 */
export async function callGrpcMethodOnce<Request, Reply>(
  path: string,
  method: grpc.MethodDefinition<Request, Reply>,
  request: Request,
  deadlineMs: number,
  stop?: AbortSignal,
): Promise<Reply> {
  using client = new GrpcClient(path)
  return await client.call(method, request, deadlineMs, stop)
}

/**
 * The connections of one client. grpc-js closes a client without the connection whose server has not answered the HTTP/2
 * handshake: each call to a runtime or kubelet that hangs would leave a descriptor.
 */
class GrpcClientConnections implements Disposable {
  readonly credentials: ChannelCredentials
  readonly #sockets = new Set<Socket>()
  #isClosed = false

  constructor() {
    this.credentials = credentials.createInsecure()
    const createConnector = this.credentials._createSecureConnector.bind(this.credentials)
    this.credentials._createSecureConnector = (...args) => {
      const connector = createConnector(...args)
      return { ...connector, connect: (socket) => connector.connect(this.#add(socket)) }
    }
  }

  /** @returns the socket, closed if the client has been closed */
  #add(socket: Socket): Socket {
    this.#sockets.add(socket)
    socket.once('close', () => this.#sockets.delete(socket))
    if (this.#isClosed) socket.destroy()
    return socket
  }

  [Symbol.dispose](): void {
    this.#isClosed = true
    for (const socket of this.#sockets) socket.destroy()
  }
}
