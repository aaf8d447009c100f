import * as grpc from '@grpc/grpc-js'
import { nodeFs } from '../host/node-fs.ts'
import { type PathHandle, replaceHandlePath } from '../host/path-handle.ts'
import { ClientConnections } from './client-connections.ts'
import { openOwnSocket } from './socket.ts'

/** Calls methods over a unix socket. Connects at the first call, and reconnects after the connection has ended. */
export class GrpcClient implements Disposable {
  readonly #path: string
  readonly #socket: PathHandle
  readonly #connections = new ClientConnections()
  readonly #client: grpc.Client

  /** @throws {SystemError} as `openOwnSocket` */
  constructor(path: string) {
    this.#path = path
    this.#socket = openOwnSocket(path)
    this.#client = new grpc.Client(`unix:${this.#socket.link}`, this.#connections.credentials, {
      // Handles are reused, so another client's connection to the same link may lead to another socket.
      'grpc.use_local_subchannel_pool': 1,
      'grpc.default_authority': 'localhost',
      'grpc.enable_channelz': 0,
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
        else reject(replaceHandlePath(error, this.#socket.link, this.#path))
      },
    )
    stop?.addEventListener('abort', () => call.cancel(), { once: true })
    return promise
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
 * @throws {SystemError} as `openOwnSocket`; {grpc.ServiceError} if the call fails or no answer comes in time
 */
export async function callOnce<Request, Reply>(
  path: string,
  method: grpc.MethodDefinition<Request, Reply>,
  request: Request,
  deadlineMs: number,
  stop?: AbortSignal,
): Promise<Reply> {
  using client = new GrpcClient(path)
  return await client.call(method, request, deadlineMs, stop)
}
