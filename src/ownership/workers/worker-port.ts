import type { MessagePort } from 'node:worker_threads'
import { STOP, signalOf, type ToPool, type ToWorker, type WorkerData } from './messages.ts'

/** receiveMessageOnPort of node:worker_threads. */
export type Receive = (port: MessagePort) => { message: unknown } | undefined

/** A worker's way to the pool: it waits for answers without an event loop, as a walk is one long run. */
export class WorkerPort {
  readonly #port: MessagePort
  readonly #receive: Receive
  readonly #shared: Int32Array
  readonly #signal: number
  readonly #arrived: ToWorker[] = []

  constructor(port: MessagePort, receive: Receive, { shared, index }: WorkerData) {
    this.#port = port
    this.#receive = receive
    this.#shared = shared
    this.#signal = signalOf(index)
  }

  /** @param transfer memory that is the pool's from now on */
  say(message: ToPool, transfer: ArrayBuffer[] = []): void {
    this.#port.postMessage(message, transfer)
  }

  /** The next message of one of these kinds; others stay for whoever waits for them. */
  await<K extends ToWorker['say']>(...kinds: K[]): Extract<ToWorker, { say: K }> {
    const isAwaited = (message: ToWorker): message is Extract<ToWorker, { say: K }> =>
      (kinds as string[]).includes(message.say)
    for (;;) {
      const index = this.#arrived.findIndex(isAwaited)
      if (index >= 0) return this.#arrived.splice(index, 1)[0] as Extract<ToWorker, { say: K }>
      this.#arrived.push(this.#next())
    }
  }

  #next(): ToWorker {
    for (;;) {
      // Read first: a message that comes after this look moves it, and the wait ends at once.
      const seen = Atomics.load(this.#shared, this.#signal)
      const received = this.#receive(this.#port)
      if (received) return received.message as ToWorker
      if (Atomics.load(this.#shared, STOP) === 1) throw new Error('another thread of the walk has failed')
      Atomics.wait(this.#shared, this.#signal, seen)
    }
  }
}
