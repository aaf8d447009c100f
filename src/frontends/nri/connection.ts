import type { Duplex } from 'node:stream'
import { escapeUnprintable } from '../../errors/escape.ts'
import { renderCodes } from '../../errors/fault.ts'
import { Refusal } from '../../errors/refusal.ts'
import {
  CONNECTION,
  encodeFrames,
  encodeMessage,
  MESSAGE_TYPE,
  MuxReader,
  ProtocolError,
  SERVICE,
  STATUS_CODE,
  type TtrpcMessage,
  TtrpcReader,
  ttrpcRequest,
  ttrpcResponse,
} from './protocol.ts'

/** The runtime gets the status UNIMPLEMENTED for it. */
export class Unimplemented extends Error {}

/** Serves a method of the plugin and returns the encoded response. The runtime gets the message of what it throws. */
export type ServeMethod = (method: string, payload: Uint8Array) => Uint8Array | Promise<Uint8Array>

interface PendingCall {
  readonly resolve: (payload: Uint8Array) => void
  readonly reject: (error: Error) => void
}

/** Limit of concurrent requests. A runtime has a few; more mean an attack or a fault. */
const MAX_REQUESTS = 10_000

/** Serves the plugin's service and calls the runtime's on one NRI socket, until the socket closes. */
export class Connection {
  /** Resolves when the socket closes, with the error that closed it, if any. */
  readonly ended: Promise<Error | undefined>
  readonly #socket: Duplex
  readonly #serve: ServeMethod
  readonly #readers = new Map([
    [CONNECTION.plugin as number, new TtrpcReader()],
    [CONNECTION.runtime as number, new TtrpcReader()],
  ])
  readonly #calls = new Map<number, PendingCall>()
  readonly #mux = new MuxReader()
  #runningRequests = 0
  #onIdle = () => {}
  #nextStream = 1

  /** @param socket connected; the connection closes it */
  constructor(socket: Duplex, serve: ServeMethod) {
    this.#socket = socket
    this.#serve = serve
    const { promise, resolve } = Promise.withResolvers<Error | undefined>()
    this.ended = promise
    let reason: Error | undefined
    socket.on('error', (error) => {
      reason ??= error
    })
    socket.on('data', (piece: Buffer) => this.#receive(piece))
    socket.once('close', () => {
      for (const { reject } of this.#calls.values()) reject(reason ?? new Error('the runtime closed the connection'))
      this.#calls.clear()
      resolve(reason)
    })
    // A runtime that ended its side reads no more answers.
    socket.once('end', () => socket.destroy())
  }

  /** Calls a method of the runtime's service. @throws Error with the message of the status, or if no answer comes */
  call(method: string, payload: Uint8Array, timeoutMs: number): Promise<Uint8Array> {
    const stream = this.#nextStream
    this.#nextStream += 2
    const { promise, resolve, reject } = Promise.withResolvers<Uint8Array>()
    const timer = setTimeout(() => {
      this.#calls.delete(stream)
      reject(new Error(`the runtime has not answered ${method} in ${timeoutMs} ms`))
    }, timeoutMs)
    this.#calls.set(stream, { resolve, reject })
    const timeoutNano = BigInt(timeoutMs) * 1_000_000n
    const message = ttrpcRequest.encode({ service: SERVICE.runtime, method, payload, timeoutNano })
    this.#send(CONNECTION.runtime, { stream, type: MESSAGE_TYPE.request, payload: message })
    return promise.finally(() => clearTimeout(timer))
  }

  close(error?: Error): void {
    this.#socket.destroy(error)
  }

  /** Closes the socket once all requests are answered, or after the timeout. */
  async closeWhenAnswered(timeoutMs: number): Promise<void> {
    const timer = setTimeout(() => this.close(), timeoutMs)
    void this.ended.then(() => clearTimeout(timer))
    if (this.#runningRequests > 0) {
      await new Promise<void>((resolve) => {
        this.#onIdle = resolve
      })
    }
    this.#socket.end(() => this.close())
  }

  #send(connection: number, message: TtrpcMessage): void {
    if (!this.#socket.destroyed) this.#socket.write(encodeFrames(connection, encodeMessage(message)))
  }

  #receive(piece: Buffer): void {
    try {
      for (const { connection, bytes } of this.#mux.push(piece)) {
        for (const message of this.#readers.get(connection)?.push(bytes) ?? []) {
          if (connection === CONNECTION.plugin) this.#answerRequest(message)
          else this.#settleCall(message)
        }
      }
    } catch (error) {
      this.close(error instanceof Error ? error : new ProtocolError(String(error)))
    }
  }

  #settleCall({ stream, type, payload }: TtrpcMessage): void {
    const waiting = this.#calls.get(stream)
    if (type !== MESSAGE_TYPE.response || waiting === undefined) return
    this.#calls.delete(stream)
    const { status, payload: answer } = ttrpcResponse.decode(payload)
    if (status === undefined || status.code === STATUS_CODE.ok) waiting.resolve(answer)
    else waiting.reject(new Error(status.message))
  }

  #answerRequest({ stream, type, payload }: TtrpcMessage): void {
    // NRI uses no streams, so other types of message are ignored.
    if (type !== MESSAGE_TYPE.request) return
    if (this.#runningRequests >= MAX_REQUESTS) throw new ProtocolError(`more than ${MAX_REQUESTS} requests at once`)
    const { service, method, payload: input } = ttrpcRequest.decode(payload)
    try {
      if (service !== SERVICE.plugin) throw new Unimplemented(`no service ${service}`)
      const output = this.#serve(method, input)
      if (output instanceof Uint8Array) this.#respond(stream, output)
      else void this.#respondLater(stream, output)
    } catch (error) {
      this.#fail(stream, error)
    }
  }

  async #respondLater(stream: number, output: Promise<Uint8Array>): Promise<void> {
    this.#runningRequests++
    try {
      this.#respond(stream, await output)
    } catch (error) {
      this.#fail(stream, error)
    } finally {
      this.#runningRequests--
      if (this.#runningRequests === 0) this.#onIdle()
    }
  }

  #respond(stream: number, payload: Uint8Array): void {
    const message = ttrpcResponse.encode({ status: undefined, payload })
    this.#send(CONNECTION.plugin, { stream, type: MESSAGE_TYPE.response, payload: message })
  }

  #fail(stream: number, error: unknown): void {
    const codes = error instanceof Refusal ? renderCodes(error.faults) : ''
    const message = `${escapeUnprintable(error instanceof Error ? error.message : String(error))}${codes}`
    const payload = ttrpcResponse.encode({
      status: { code: resolveStatusCode(error), message },
      payload: new Uint8Array(),
    })
    this.#send(CONNECTION.plugin, { stream, type: MESSAGE_TYPE.response, payload })
  }
}

function resolveStatusCode(error: unknown): number {
  if (error instanceof Unimplemented) return STATUS_CODE.unimplemented
  return error instanceof Refusal ? STATUS_CODE.failedPrecondition : STATUS_CODE.unknown
}
