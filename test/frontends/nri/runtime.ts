import { once } from 'node:events'
import * as net from 'node:net'
import { decode, encode } from './proto.ts'

const SERVICE = 'nri.pkg.api.v1alpha1.Plugin'

interface Registration {
  pluginName: string
  pluginIdx: string
  NRIVersion: string
}

/** What a call came to: the decoded message of that name, or a status. */
export type Answer =
  | { payload: Buffer; status?: undefined }
  | { payload?: undefined; status: { code: number; message: string } }

/** A runtime's end of an NRI connection, written apart from the plugin's. */
export class RuntimeEnd {
  readonly registered: Promise<Registration>
  readonly socket: net.Socket
  /** How long the frames were that came, in bytes. */
  readonly frames: number[] = []
  #buffer = Buffer.alloc(0)
  readonly #streams: Record<number, Buffer> = { 1: Buffer.alloc(0), 2: Buffer.alloc(0) }
  readonly #calls = new Map<number, (answer: Answer) => void>()
  #next = 1

  constructor(socket: net.Socket) {
    this.socket = socket
    const { promise, resolve } = Promise.withResolvers<Registration>()
    this.registered = promise
    socket.on('error', () => {})
    socket.on('data', (piece: Buffer) => {
      this.#buffer = Buffer.concat([this.#buffer, piece])
      while (this.#buffer.length >= 8 && this.#buffer.length >= 8 + this.#buffer.readUInt32BE(4)) {
        const id = this.#buffer.readUInt32BE(0)
        const end = 8 + this.#buffer.readUInt32BE(4)
        this.frames.push(end - 8)
        this.#streams[id] = Buffer.concat([this.#streams[id] ?? Buffer.alloc(0), this.#buffer.subarray(8, end)])
        this.#buffer = this.#buffer.subarray(end)
        this.#read(id, resolve)
      }
    })
  }

  #read(id: number, registered: (request: Registration) => void): void {
    let bytes: Buffer = this.#streams[id] ?? Buffer.alloc(0)
    while (bytes.length >= 10 && bytes.length >= 10 + bytes.readUInt32BE(0)) {
      const end = 10 + bytes.readUInt32BE(0)
      const stream = bytes.readUInt32BE(4)
      const payload = bytes.subarray(10, end)
      if (id === 1) {
        const { status, payload: answer } = decode('Response', payload)
        const settle = this.#calls.get(stream)
        this.#calls.delete(stream)
        settle?.(status && status.code !== 0 ? { status } : { payload: Buffer.from(answer) })
      } else {
        const request = decode('Request', payload)
        this.send(2, stream, 2, encode('Response', { payload: encode('Empty', {}) }))
        registered(decode('RegisterPluginRequest', request.payload))
      }
      bytes = bytes.subarray(end)
    }
    this.#streams[id] = bytes
  }

  send(id: number, stream: number, type: number, payload: Buffer): void {
    const message = Buffer.alloc(10)
    message.writeUInt32BE(payload.length, 0)
    message.writeUInt32BE(stream, 4)
    message[8] = type
    this.frame(id, Buffer.concat([message, payload]))
  }

  frame(id: number, bytes: Buffer): void {
    const header = Buffer.alloc(8)
    header.writeUInt32BE(id, 0)
    header.writeUInt32BE(bytes.length, 4)
    this.socket.write(Buffer.concat([header, bytes]))
  }

  /** @param type of the request */
  call(method: string, type: string, value: object, service = SERVICE): Promise<Answer> {
    const stream = this.#next
    this.#next += 2
    return new Promise((resolve) => {
      this.#calls.set(stream, resolve)
      const request = { service, method, payload: encode(type, value), timeout_nano: 2e9, timeoutNano: 2e9 }
      this.send(1, stream, 1, encode('Request', request))
    })
  }

  /** As runtimes do: registration, configuration, then all that runs. @returns what the plugin was configured to be told */
  async start(pods: object[] = [], containers: object[] = []): Promise<number> {
    await this.registered
    const { payload } = await this.call('Configure', 'ConfigureRequest', {
      runtimeName: 'containerd',
      runtimeVersion: 'v2.1.9',
      requestTimeout: 2000,
    })
    await this.call('Synchronize', 'SynchronizeRequest', { pods, containers })
    return decode('ConfigureResponse', payload ?? Buffer.alloc(0)).events
  }
}

/** Listens where a runtime would. */
export class FakeRuntime {
  readonly #server = net.createServer()

  async listen(path: string): Promise<this> {
    this.#server.listen(path)
    await once(this.#server, 'listening')
    return this
  }

  async next(): Promise<RuntimeEnd> {
    const [socket] = (await once(this.#server, 'connection')) as [net.Socket]
    return new RuntimeEnd(socket)
  }

  async close(): Promise<void> {
    this.#server.close()
    await once(this.#server, 'close')
  }
}
