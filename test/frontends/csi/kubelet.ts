import * as grpc from '@grpc/grpc-js'
import protobuf from 'protobufjs'
import { PROTO, REGISTRATION_PROTO } from './proto.ts'

const { root } = protobuf.parse(PROTO, { keepCase: true })
const registration = protobuf.parse(REGISTRATION_PROTO, { keepCase: true }).root

/** What a call was answered with. `code` is the name of gRPC's. */
export interface Answer {
  code: string
  message: string
  reply: Record<string, unknown>
}

/** Where and how kubelet 1.36 dials: a connection for each call. */
export interface Dial {
  socket: string
  authority?: string
  deadlineMs?: number
}

/** Makes a call as kubelet does, by another implementation of protobuf. @param signal cancels it */
export function call(
  { socket, authority = 'localhost', deadlineMs = 120_000 }: Dial,
  path: string,
  request: object,
  signal?: AbortSignal,
): Promise<Answer> {
  const [service = '', method = ''] = path.split('/')
  const space = service === 'Registration' ? 'pluginregistration' : 'csi.v1'
  const types = service === 'Registration' ? registration : root
  const [input, output] = NAMES[method] ?? [`${method}Request`, `${method}Response`]
  const Input = types.lookupType(`${space}.${input}`)
  const Output = types.lookupType(`${space}.${output}`)
  const fault = Input.verify(request)
  if (fault) throw new Error(`${input}: ${fault}`)
  const client = new grpc.Client(`unix:${socket}`, grpc.credentials.createInsecure(), {
    'grpc.default_authority': authority,
    'grpc.use_local_subchannel_pool': 1,
  })
  const { promise, resolve } = Promise.withResolvers<Answer>()
  const running = client.makeUnaryRequest(
    `/${space}.${service}/${method}`,
    (value: object) => Buffer.from(Input.encode(Input.create(value)).finish()),
    (bytes: Buffer) => Output.toObject(Output.decode(bytes), { longs: String, defaults: true, arrays: true }),
    request,
    { deadline: Date.now() + deadlineMs },
    (error, reply) =>
      resolve({ code: grpc.status[error?.code ?? 0] ?? '', message: error?.details ?? '', reply: reply ?? {} }),
  )
  signal?.addEventListener('abort', () => running.cancel())
  return promise.finally(() => client.close())
}

const NAMES: Readonly<Record<string, [string, string]>> = {
  GetInfo: ['InfoRequest', 'PluginInfo'],
  NotifyRegistrationStatus: ['RegistrationStatus', 'RegistrationStatusResponse'],
}
