import * as fs from 'node:fs'
import { join } from 'node:path'
import * as grpc from '@grpc/grpc-js'
import { serviceDefinition } from './proto.ts'

export interface Device {
  ID: string
  health: string
}

export interface Registered {
  version: string
  endpoint: string
  resource_name: string
  options: unknown
  /** The endpoint was a socket when the request came. */
  listening: boolean
}

type Manner = 'takes' | 'refuses' | 'never answers' | 'never calls back'

/**
 * Kubelet's device manager, as a plugin meets it: empties the directory when it starts, takes registrations on kubelet.sock,
 * calls back on the plugin's socket and watches its devices.
 */
export class Kubelet {
  manner: Manner = 'takes'
  /** What it gives as `:authority`; undefined: the socket's path, as before Kubernetes 1.26. */
  authority: string | undefined = 'localhost'
  readonly registrations: Registered[] = []
  /** Each list that came. */
  readonly lists: Device[][] = []
  /** How many watches have ended. */
  ended = 0
  readonly #directory: string
  #server: grpc.Server | undefined
  #clients: grpc.Client[] = []
  #watches: grpc.ClientReadableStream<unknown>[] = []

  constructor(directory: string) {
    this.#directory = directory
  }

  get socket(): string {
    return join(this.#directory, 'kubelet.sock')
  }

  get health(): string[] {
    return [...new Set(this.lists.at(-1)?.map(({ health }) => health))]
  }

  async start(): Promise<void> {
    fs.mkdirSync(this.#directory, { recursive: true, mode: 0o750 })
    for (const name of fs.readdirSync(this.#directory)) {
      if (name !== 'kubelet_internal_checkpoint') fs.rmSync(join(this.#directory, name))
    }
    const server = new grpc.Server()
    server.addService(serviceDefinition('Registration'), {
      Register: (call: { request: Registered }, answer: grpc.sendUnaryData<object>) =>
        this.#register(call.request, answer),
    })
    await new Promise<void>((resolve, reject) => {
      server.bindAsync(`unix:${this.socket}`, grpc.ServerCredentials.createInsecure(), (error) =>
        error ? reject(error) : resolve(),
      )
    })
    this.#server = server
  }

  /** Ends at once. A killed kubelet leaves its socket behind. */
  stop({ killed = false } = {}): void {
    if (killed) fs.renameSync(this.socket, `${this.#directory}.kept`)
    for (const watch of this.#watches.splice(0)) watch.cancel()
    for (const client of this.#clients.splice(0)) client.close()
    this.#server?.forceShutdown()
    this.#server = undefined
    if (killed) fs.renameSync(`${this.#directory}.kept`, this.socket)
  }

  async restart(): Promise<void> {
    this.stop()
    await this.start()
  }

  /** A call to the plugin that registered last. @throws gRPC's error */
  call(method: string, request: object): Promise<Record<string, unknown>> {
    const client = this.#dial(this.registrations.at(-1)?.endpoint ?? '')
    return new Promise((resolve, reject) => {
      const run = client[method] as (request: object, done: grpc.requestCallback<Record<string, unknown>>) => void
      run.call(client, request, (error, reply) => (error ? reject(error) : resolve(reply ?? {})))
    })
  }

  #register(request: Registered, answer: grpc.sendUnaryData<object>): void {
    const listening = fs.existsSync(join(this.#directory, request.endpoint))
    this.registrations.push({ ...request, listening })
    if (this.manner === 'never answers') return
    if (this.manner === 'refuses') answer({ code: grpc.status.UNKNOWN, message: 'not now' })
    else answer(null, {})
    if (this.manner === 'takes') this.#watch(request.endpoint)
  }

  #watch(endpoint: string): void {
    const client = this.#dial(endpoint)
    const stream = (client.ListAndWatch as (request: object) => grpc.ClientReadableStream<{ devices: Device[] }>)({})
    this.#watches.push(stream)
    stream.on('data', ({ devices }) => this.lists.push(devices))
    stream.on('error', () => {})
    stream.on('end', () => {
      this.ended += 1
    })
  }

  #dial(endpoint: string) {
    const path = join(this.#directory, endpoint)
    const PluginClient = grpc.makeGenericClientConstructor(serviceDefinition('DevicePlugin'), 'DevicePlugin')
    const client = new PluginClient(`unix:${path}`, grpc.credentials.createInsecure(), {
      'grpc.default_authority': this.authority ?? path,
    })
    this.#clients.push(client)
    return client
  }
}
