import type { Worker } from 'node:worker_threads'
import type { ToldGroups } from '../src/nri/pod-groups.ts'
import { startThread } from './thread.ts'

/** Somewhat more than the thread gives each runtime, ms. */
const MAX_WAIT_MS = 700

/**
 * Asks the container runtime for the groups of pods in another thread: the answer is JSON with the whole pod, which the
 * thread that answers the runtime does not parse.
 */
export class PodGroupsThread implements Disposable {
  readonly #sockets: readonly string[]
  readonly #waiting = new Map<string, ((groups: ToldGroups | undefined) => void)[]>()
  #thread: Worker | undefined

  /** @param sockets where runtimes may answer CRI */
  constructor(sockets: readonly string[]) {
    this.#sockets = sockets
    this.#thread = this.#start()
  }

  /** @returns undefined where nobody tells. Never rejects. */
  of(sandbox: string): Promise<ToldGroups | undefined> {
    const { promise, resolve } = Promise.withResolvers<ToldGroups | undefined>()
    const waiting = this.#waiting.get(sandbox)
    if (waiting !== undefined) waiting.push(resolve)
    else {
      this.#waiting.set(sandbox, [resolve])
      this.#thread ??= this.#start()
      this.#thread.postMessage(sandbox)
      setTimeout(() => this.#settle(sandbox, undefined), MAX_WAIT_MS).unref()
    }
    return promise
  }

  [Symbol.dispose](): void {
    void this.#thread?.terminate()
  }

  #start(): Worker {
    const thread = startThread('pod-groups', this.#sockets)
    thread.unref()
    thread.on('message', ({ sandbox, groups }) => this.#settle(sandbox, groups))
    const end = () => {
      if (this.#thread === thread) this.#thread = undefined
      for (const sandbox of [...this.#waiting.keys()]) this.#settle(sandbox, undefined)
    }
    thread.on('error', end)
    thread.on('exit', end)
    return thread
  }

  #settle(sandbox: string, groups: ToldGroups | undefined): void {
    const waiting = this.#waiting.get(sandbox) ?? []
    this.#waiting.delete(sandbox)
    for (const resolve of waiting) resolve(groups)
  }
}
