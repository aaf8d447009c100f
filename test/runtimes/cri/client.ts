import * as grpc from '@grpc/grpc-js'
import protobuf from 'protobufjs'
import { PROTO } from './proto.ts'

const { root } = protobuf.parse(PROTO, { keepCase: true })

/** What a kubelet asks a runtime for; requests and replies by the names of the interface. */
export class Cri {
  readonly #client: grpc.Client

  constructor(socket: string) {
    this.#client = new grpc.Client(`unix:${socket}`, grpc.credentials.createInsecure(), {
      'grpc.default_authority': 'localhost',
      'grpc.max_reconnect_backoff_ms': 1000,
    })
  }

  /** @throws {Error} with the runtime's own words, which a kubelet has in the pod's event */
  call<Reply extends object = Record<string, never>>(method: string, request: object = {}): Promise<Reply> {
    const Input = root.lookupType(`runtime.v1.${method}Request`)
    const Output = root.lookupType(`runtime.v1.${method}Response`)
    const fault = Input.verify(request)
    if (fault) throw new Error(`${method}: ${fault}`)
    const { promise, resolve, reject } = Promise.withResolvers<Reply>()
    this.#client.makeUnaryRequest(
      `/runtime.v1.RuntimeService/${method}`,
      (value: object) => Buffer.from(Input.encode(Input.create(value)).finish()),
      (bytes: Buffer) =>
        Output.toObject(Output.decode(bytes), { longs: Number, defaults: true, arrays: true }) as Reply,
      request,
      { deadline: Date.now() + DEADLINE_MS },
      (error, reply) => (error ? reject(new Error(error.details)) : resolve(reply as Reply)),
    )
    return promise
  }

  close(): void {
    this.#client.close()
  }
}

// As kubelet's --runtime-request-timeout.
const DEADLINE_MS = 120_000
