import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import { RESIDENT_WORKER_VERB } from '../../src/kernel/worker-process.ts'
import { BINARY } from './node-directory.ts'

const START_TIMEOUT_MS = 30_000
const END_TIMEOUT_MS = 10_000

/** The worker to which the loader hands calls, started as heal starts it. Without heal nothing is repaired meanwhile. */
export class ResidentWorker {
  readonly socket: string
  readonly #directory: string
  readonly #child: ChildProcess
  readonly #ended: Promise<unknown>
  #reports = ''

  /** @param configFile a worker makes only calls with the same configuration */
  constructor(configFile: string) {
    // Not on the node: its directories are compared after a call.
    this.#directory = fs.mkdtempSync(`${tmpdir()}/modekeep-door-`)
    this.socket = `${this.#directory}/socket`
    const env = { MODEKEEP_CONFIG: configFile, MODEKEEP_SOCKET: this.socket }
    this.#child = spawn(BINARY, [RESIDENT_WORKER_VERB], { stdio: ['pipe', 'pipe', 'ignore'], env })
    this.#child.stdin?.on('error', () => {})
    this.#child.stdout?.on('data', (data) => {
      this.#reports += data
    })
    this.#ended = once(this.#child, 'close')
  }

  get pid(): number {
    return this.#child.pid ?? 0
  }

  get isAlive(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null
  }

  /** Calls that it completed, also those that failed. */
  get completedCalls(): number {
    return this.#reports.split('"outcome"').length - 1
  }

  /** Whether it has reported the begin of a call and not its end. */
  get isBusy(): boolean {
    return this.#reports.lastIndexOf('"patienceMs"') > this.#reports.lastIndexOf('"outcome"')
  }

  async untilListening(): Promise<void> {
    await this.#until(() => fs.existsSync(this.socket), START_TIMEOUT_MS, 'listens')
  }

  /** @throws {Error} if it works on after the loader has answered for it */
  async untilIdle(): Promise<void> {
    await this.#until(() => !this.isBusy, END_TIMEOUT_MS, 'completes its call')
  }

  async #until(holds: () => boolean, timeoutMs: number, what: string): Promise<void> {
    const deadline = performance.now() + timeoutMs
    while (this.isAlive && !holds()) {
      if (performance.now() > deadline) throw new Error(`no resident worker ${what} within ${timeoutMs} ms`)
      await delay(2)
    }
  }

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.#ended
  }

  /** Ends it, after its call. */
  async close(): Promise<void> {
    this.#child.stdin?.end()
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), END_TIMEOUT_MS)
    await this.#ended
    clearTimeout(timer)
    fs.rmSync(this.#directory, { recursive: true, force: true })
  }
}
