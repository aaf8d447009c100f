import type { MessagePort } from 'node:worker_threads'
import { type MemberData, STOP, signalOf, type ToLead, type ToMember } from './messages.ts'

/** receiveMessageOnPort of node:worker_threads. */
export type Receive = (port: MessagePort) => { message: unknown } | undefined

/** A member's way to the lead: it waits for answers without an event loop, as a walk is one long run. */
export class MemberPort {
  readonly #port: MessagePort
  readonly #receive: Receive
  readonly #shared: Int32Array
  readonly #signal: number
  readonly #arrived: ToMember[] = []

  constructor(port: MessagePort, receive: Receive, { shared, index }: MemberData) {
    this.#port = port
    this.#receive = receive
    this.#shared = shared
    this.#signal = signalOf(index)
  }

  /** @param transfer memory that is the lead's from now on */
  say(message: ToLead, transfer: ArrayBuffer[] = []): void {
    this.#port.postMessage(message, transfer)
  }

  /** The next message of one of these kinds; others stay for whoever waits for them. */
  await<K extends ToMember['say']>(...kinds: K[]): Extract<ToMember, { say: K }> {
    const isAwaited = (message: ToMember): message is Extract<ToMember, { say: K }> =>
      (kinds as string[]).includes(message.say)
    for (;;) {
      const index = this.#arrived.findIndex(isAwaited)
      if (index >= 0) return this.#arrived.splice(index, 1)[0] as Extract<ToMember, { say: K }>
      this.#arrived.push(this.#next())
    }
  }

  #next(): ToMember {
    for (;;) {
      // Read first: a message that comes after this look moves it, and the wait ends at once.
      const seen = Atomics.load(this.#shared, this.#signal)
      const received = this.#receive(this.#port)
      if (received) return received.message as ToMember
      if (Atomics.load(this.#shared, STOP) === 1) throw new Error('another thread of the walk has failed')
      Atomics.wait(this.#shared, this.#signal, seen)
    }
  }
}
