import * as grpc from '@grpc/grpc-js'
import { nodeFs } from '../host/node-fs.ts'
import { assertOwnSocket } from '../host/write-file.ts'

/** Calls over a unix socket, by one connection that is made when it is needed, and again after its end. */
export class Client implements Disposable {
  readonly #client: grpc.Client

  constructor(path: string) {
    assertOwnSocket(nodeFs, path)
    this.#client = new grpc.Client(`unix:${path}`, grpc.credentials.createInsecure(), {
      'grpc.default_authority': 'localhost',
      'grpc.enable_channelz': 0,
      // Who answers here is started again in a moment, or not at all.
      'grpc.initial_reconnect_backoff_ms': 100,
      'grpc.max_reconnect_backoff_ms': 1000,
    })
  }

  /** @throws {grpc.ServiceError} where no answer comes in time, or a fault */
  ask<Request, Reply>(
    method: grpc.MethodDefinition<Request, Reply>,
    request: Request,
    deadlineMs: number,
  ): Promise<Reply> {
    const { promise, resolve, reject } = Promise.withResolvers<Reply>()
    this.#client.makeUnaryRequest(
      method.path,
      method.requestSerialize,
      method.responseDeserialize,
      request,
      { deadline: Date.now() + deadlineMs },
      (error, reply) => (error === null && reply !== undefined ? resolve(reply) : reject(error)),
    )
    return promise
  }

  [Symbol.dispose](): void {
    this.#client.close()
  }
}

/**
 * Makes one call over a unix socket, on a connection of its own.
 * @throws {grpc.ServiceError} where no answer comes in time, or a fault
 */
export async function ask<Request, Reply>(
  path: string,
  method: grpc.MethodDefinition<Request, Reply>,
  request: Request,
  deadlineMs: number,
): Promise<Reply> {
  using client = new Client(path)
  return await client.ask(method, request, deadlineMs)
}
