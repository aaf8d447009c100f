import type { Duplex } from 'node:stream'
import { printable } from '../refusal/printable.ts'
import { Refusal } from '../refusal/refusal.ts'
import { SERVICE } from './messages.ts'
import { CONNECTION, MuxReader, muxed } from './mux.ts'
import { ProtocolError } from './records.ts'
import { CODE, encodeMessage, request, response, type TtrpcMessage, TtrpcReader, TYPE } from './ttrpc.ts'

/** A call that is answered with a status of its own. */
export class Unimplemented extends Error {}

/** What a method of the plugin's answers: bytes of its response. It may throw, also a Refusal, whose text is answered. */
export type Serve = (method: string, payload: Uint8Array) => Uint8Array | Promise<Uint8Array>

interface Waiting {
  readonly resolve: (payload: Uint8Array) => void
  readonly reject: (error: Error) => void
}

/** Requests under way: a runtime has a few. What is above is hostile, or a fault. */
const MOST_REQUESTS = 10_000

/** The two services of one NRI socket: serves the plugin's and calls the runtime's. It ends with its socket. */
export class Connection {
  /** Settles once, when the socket is closed: with the reason, where there is one. */
  readonly ended: Promise<Error | undefined>
  readonly #socket: Duplex
  readonly #serve: Serve
  readonly #readers = new Map([
    [CONNECTION.plugin as number, new TtrpcReader()],
    [CONNECTION.runtime as number, new TtrpcReader()],
  ])
  readonly #calls = new Map<number, Waiting>()
  readonly #mux = new MuxReader()
  #underWay = 0
  #onIdle = () => {}
  #nextStream = 1

  /** @param socket open; it is the connection's from now on */
  constructor(socket: Duplex, serve: Serve) {
    this.#socket = socket
    this.#serve = serve
    const { promise, resolve } = Promise.withResolvers<Error | undefined>()
    this.ended = promise
    let reason: Error | undefined
    socket.on('error', (error) => {
      reason ??= error
    })
    socket.on('data', (piece: Buffer) => this.#hear(piece))
    socket.once('close', () => {
      for (const { reject } of this.#calls.values()) reject(reason ?? new Error('the runtime closed the connection'))
      this.#calls.clear()
      resolve(reason)
    })
    // Who ends its side hears nothing any more.
    socket.once('end', () => socket.destroy())
  }

  /** Calls a method of the runtime's service. @throws Error with the status' text, or why there is no answer */
  call(method: string, payload: Uint8Array, timeoutMs: number): Promise<Uint8Array> {
    const stream = this.#nextStream
    this.#nextStream += 2
    const { promise, resolve, reject } = Promise.withResolvers<Uint8Array>()
    const late = setTimeout(() => {
      this.#calls.delete(stream)
      reject(new Error(`the runtime has not answered ${method} in ${timeoutMs} ms`))
    }, timeoutMs)
    this.#calls.set(stream, { resolve, reject })
    const timeoutNano = BigInt(timeoutMs) * 1_000_000n
    const message = request.encode({ service: SERVICE.runtime, method, payload, timeoutNano })
    this.#send(CONNECTION.runtime, { stream, type: TYPE.request, payload: message })
    return promise.finally(() => clearTimeout(late))
  }

  close(error?: Error): void {
    this.#socket.destroy(error)
  }

  /** Closes it once all that was asked is answered, or after so long. */
  async closeAnswered(mostMs: number): Promise<void> {
    const late = setTimeout(() => this.close(), mostMs)
    void this.ended.then(() => clearTimeout(late))
    if (this.#underWay > 0) {
      await new Promise<void>((resolve) => {
        this.#onIdle = resolve
      })
    }
    this.#socket.end(() => this.close())
  }

  #send(connection: number, message: TtrpcMessage): void {
    if (!this.#socket.destroyed) this.#socket.write(muxed(connection, encodeMessage(message)))
  }

  #hear(piece: Buffer): void {
    try {
      for (const { connection, bytes } of this.#mux.push(piece)) {
        for (const message of this.#readers.get(connection)?.push(bytes) ?? []) {
          if (connection === CONNECTION.plugin) this.#answer(message)
          else this.#settle(message)
        }
      }
    } catch (error) {
      this.close(error instanceof Error ? error : new ProtocolError(String(error)))
    }
  }

  #settle({ stream, type, payload }: TtrpcMessage): void {
    const waiting = this.#calls.get(stream)
    if (type !== TYPE.response || waiting === undefined) return
    this.#calls.delete(stream)
    const { status, payload: answer } = response.decode(payload)
    if (status === undefined || status.code === CODE.ok) waiting.resolve(answer)
    else waiting.reject(new Error(status.message))
  }

  #answer({ stream, type, payload }: TtrpcMessage): void {
    // Nothing else is sent by who calls methods without streams.
    if (type !== TYPE.request) return
    if (this.#underWay >= MOST_REQUESTS) throw new ProtocolError(`more than ${MOST_REQUESTS} requests at once`)
    const { service, method, payload: input } = request.decode(payload)
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
    this.#underWay++
    try {
      this.#respond(stream, await output)
    } catch (error) {
      this.#fail(stream, error)
    } finally {
      this.#underWay--
      if (this.#underWay === 0) this.#onIdle()
    }
  }

  #respond(stream: number, payload: Uint8Array): void {
    const message = response.encode({ status: undefined, payload })
    this.#send(CONNECTION.plugin, { stream, type: TYPE.response, payload: message })
  }

  #fail(stream: number, error: unknown): void {
    const message = printable(error instanceof Error ? error.message : String(error))
    const payload = response.encode({ status: { code: codeOf(error), message }, payload: new Uint8Array() })
    this.#send(CONNECTION.plugin, { stream, type: TYPE.response, payload })
  }
}

function codeOf(error: unknown): number {
  if (error instanceof Unimplemented) return CODE.unimplemented
  return error instanceof Refusal ? CODE.failedPrecondition : CODE.unknown
}
