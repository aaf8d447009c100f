import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Job, Outcome } from './every-fault.ts'
import type { Fault } from './fault.ts'
import { type Answer, DOOR_OPTION, type Order } from './messages.ts'

const WORKER = `${import.meta.dirname}/worker.ts`

/** Runs what it is asked in a process with mounts of its own, which go with it. */
export class Worker {
  readonly #child: ChildProcess

  constructor(isDoor = false) {
    const node = [process.execPath, WORKER, ...(isDoor ? [DOOR_OPTION] : [])]
    this.#child = spawn('unshare', ['--mount', '--propagation', 'private', ...node], {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    })
  }

  async jobsOf(scenario: number, faults: readonly Fault[]): Promise<{ title: string; jobs: Job[] }> {
    const answer = await this.#ask({ scenario, jobsOf: faults })
    if (!('jobs' in answer)) throw new Error('no jobs were answered')
    return answer
  }

  async strike(scenario: number, job: Job): Promise<Outcome> {
    const answer = await this.#ask({ scenario, strike: job })
    if (!('outcome' in answer)) throw new Error('no outcome was answered')
    return answer.outcome
  }

  #ask(order: Order): Promise<Answer> {
    return new Promise((done, fail) => {
      const settle = (how: () => void) => {
        this.#child.removeAllListeners('message').removeAllListeners('exit')
        how()
      }
      this.#child.once('message', (answer: Answer) =>
        settle(() => ('error' in answer ? fail(new Error(answer.error)) : done(answer))),
      )
      this.#child.once('exit', (code) => settle(() => fail(new Error(`a worker has ended with ${code}`))))
      this.#child.send(order)
    })
  }

  /** Ends it once its stage is removed. */
  async close(): Promise<void> {
    if (this.#child.exitCode !== null) return
    const exit = once(this.#child, 'exit')
    this.#child.disconnect()
    await exit
  }
}
