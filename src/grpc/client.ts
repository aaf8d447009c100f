import * as grpc from '@grpc/grpc-js'

/**
 * Makes one call over a unix socket, on a connection of its own.
 * @throws {grpc.ServiceError} where no answer comes in time, or a fault
 */
export function ask<Request, Reply>(
  path: string,
  method: grpc.MethodDefinition<Request, Reply>,
  request: Request,
  deadlineMs: number,
): Promise<Reply> {
  const client = new grpc.Client(`unix:${path}`, grpc.credentials.createInsecure(), {
    'grpc.default_authority': 'localhost',
    'grpc.enable_channelz': 0,
  })
  const { promise, resolve, reject } = Promise.withResolvers<Reply>()
  client.makeUnaryRequest(
    method.path,
    method.requestSerialize,
    method.responseDeserialize,
    request,
    { deadline: Date.now() + deadlineMs },
    (error, reply) => (error === null && reply !== undefined ? resolve(reply) : reject(error)),
  )
  return promise.finally(() => client.close())
}
