import type { Duplex } from 'node:stream'
import { escapeUnprintable } from '../../errors/escape.ts'
import { renderFaultCodes } from '../../errors/fault.ts'
import { Refusal } from '../../errors/refusal.ts'
import {
  encodeMuxFrames,
  encodeTtrpcMessage,
  GRPC_STATUS_CODE,
  MuxFrameReader,
  NRI_CONNECTION_NUMBERS,
  NriProtocolError,
  TTRPC_MESSAGE_TYPE,
  TTRPC_SERVICE_NAMES,
  type TtrpcMessage,
  TtrpcMessageReader,
  ttrpcRequestCodec,
  ttrpcResponseCodec,
} from './protocol.ts'

/** The runtime gets the status UNIMPLEMENTED for it. */
export class UnimplementedMethodError extends Error {}

/** Serves a method of the plugin and returns the encoded response. The runtime gets the message of what it throws. */
export type ServePluginMethod = (method: string, payload: Uint8Array) => Uint8Array | Promise<Uint8Array>

interface PendingRuntimeCall {
  readonly resolve: (payload: Uint8Array) => void
  readonly reject: (error: Error) => void
}

/** Limit of concurrent requests. A runtime has a few; more mean an attack or a fault. */
const MAX_CONCURRENT_REQUESTS = 10_000

/** Serves the plugin's service and calls the runtime's on one NRI socket, until the socket closes. */
export class NriConnection {
  /** Resolves when the socket closes, with the error that closed it, if any. */
  readonly ended: Promise<Error | undefined>
  readonly #socket: Duplex
  readonly #serve: ServePluginMethod
  readonly #readers = new Map([
    [NRI_CONNECTION_NUMBERS.plugin as number, new TtrpcMessageReader()],
    [NRI_CONNECTION_NUMBERS.runtime as number, new TtrpcMessageReader()],
  ])
  readonly #calls = new Map<number, PendingRuntimeCall>()
  readonly #mux = new MuxFrameReader()
  #runningRequests = 0
  #onIdle = () => {}
  #nextStream = 1

  /** @param socket connected; the connection closes it */
  constructor(socket: Duplex, serve: ServePluginMethod) {
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
    const message = ttrpcRequestCodec.encode({ service: TTRPC_SERVICE_NAMES.runtime, method, payload, timeoutNano })
    this.#send(NRI_CONNECTION_NUMBERS.runtime, { stream, type: TTRPC_MESSAGE_TYPE.request, payload: message })
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
    if (!this.#socket.destroyed) this.#socket.write(encodeMuxFrames(connection, encodeTtrpcMessage(message)))
  }

  #receive(piece: Buffer): void {
    try {
      for (const { connection, bytes } of this.#mux.push(piece)) {
        for (const message of this.#readers.get(connection)?.push(bytes) ?? []) {
          if (connection === NRI_CONNECTION_NUMBERS.plugin) this.#answerRequest(message)
          else this.#settleCall(message)
        }
      }
    } catch (error) {
      this.close(error instanceof Error ? error : new NriProtocolError(String(error)))
    }
  }

  #settleCall({ stream, type, payload }: TtrpcMessage): void {
    const waiting = this.#calls.get(stream)
    if (type !== TTRPC_MESSAGE_TYPE.response || waiting === undefined) return
    this.#calls.delete(stream)
    const { status, payload: answer } = ttrpcResponseCodec.decode(payload)
    if (status === undefined || status.code === GRPC_STATUS_CODE.ok) waiting.resolve(answer)
    else waiting.reject(new Error(status.message))
  }

  #answerRequest({ stream, type, payload }: TtrpcMessage): void {
    // NRI uses no streams, so other types of message are ignored.
    if (type !== TTRPC_MESSAGE_TYPE.request) return
    if (this.#runningRequests >= MAX_CONCURRENT_REQUESTS)
      throw new NriProtocolError(`more than ${MAX_CONCURRENT_REQUESTS} requests at once`)
    const { service, method, payload: input } = ttrpcRequestCodec.decode(payload)
    try {
      if (service !== TTRPC_SERVICE_NAMES.plugin) throw new UnimplementedMethodError(`no service ${service}`)
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
    const message = ttrpcResponseCodec.encode({ status: undefined, payload })
    this.#send(NRI_CONNECTION_NUMBERS.plugin, { stream, type: TTRPC_MESSAGE_TYPE.response, payload: message })
  }

  #fail(stream: number, error: unknown): void {
    const codes = error instanceof Refusal ? renderFaultCodes(error.faults) : ''
    const message = `${escapeUnprintable(error instanceof Error ? error.message : String(error))}${codes}`
    const payload = ttrpcResponseCodec.encode({
      status: { code: resolveErrorStatusCode(error), message },
      payload: new Uint8Array(),
    })
    this.#send(NRI_CONNECTION_NUMBERS.plugin, { stream, type: TTRPC_MESSAGE_TYPE.response, payload })
  }
}

function resolveErrorStatusCode(error: unknown): number {
  if (error instanceof UnimplementedMethodError) return GRPC_STATUS_CODE.unimplemented
  return error instanceof Refusal ? GRPC_STATUS_CODE.failedPrecondition : GRPC_STATUS_CODE.unknown
}
