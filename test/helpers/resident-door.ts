import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { DEFAULT_CONFIG } from '../../src/config/defaults.ts'
import { RESIDENT_WORKER_VERB, type WorkerEvents } from '../../src/kernel/worker-process.ts'
import { computeSilenceLimitMs } from '../../src/worker/given-up.ts'
import { keepResidentWorker } from '../../src/worker/resident.ts'
import { BINARY } from './node-directory.ts'

const START_TIMEOUT_MS = 30_000
const END_TIMEOUT_MS = 10_000

/** Calls that resident workers of this process's tests have completed. */
export let completedCalls = 0

/**
 * Keeps a worker that makes the FlexVolume calls of one node, as `heal --watch --answer-calls` keeps it: a worker that hangs is
 * killed, and one that ended is replaced. Unlike heal it repairs nothing, which the tests would notice.
 */
export class ResidentDoor {
  readonly socket: string
  readonly #configFile: string
  readonly #directory: string
  readonly #kept: Disposable
  #worker: ChildProcess | undefined

  /** Returns when the worker listens. */
  constructor(configFile: string) {
    this.#configFile = configFile
    this.#directory = fs.mkdtempSync(`${tmpdir()}/modekeep-door-`)
    this.socket = `${this.#directory}/socket`
    this.#kept = keepResidentWorker((events) => this.#start(events), computeSilenceLimitMs(DEFAULT_CONFIG))
    // The test makes its call right after this, and need not expect that it waits.
    const deadline = performance.now() + START_TIMEOUT_MS
    while (!fs.existsSync(this.socket)) {
      if (performance.now() > deadline) throw new Error('the resident worker does not listen')
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5)
    }
  }

  #start({ onReport, onExit }: WorkerEvents<null, never>) {
    const env = { MODEKEEP_CONFIG: this.#configFile, MODEKEEP_SOCKET: this.socket }
    const child = spawn(BINARY, [RESIDENT_WORKER_VERB], { stdio: ['pipe', 'pipe', 'ignore'], env })
    this.#worker = child
    child.stdin.on('error', () => {})
    let rest = ''
    child.stdout.on('data', (data) => {
      const lines = `${rest}${data}`.split('\n')
      rest = lines.pop() ?? ''
      for (const report of lines.map((line) => JSON.parse(line))) {
        if ('outcome' in report) completedCalls++
        onReport(report)
      }
    })
    child.once('close', () => onExit('ended'))
    return {
      pid: child.pid,
      send: () => {},
      kill: () => void child.kill('SIGKILL'),
      close: () => void child.stdin.end(),
    }
  }

  workers(): number[] {
    const { pid, exitCode, signalCode } = this.#worker ?? {}
    return pid === undefined || exitCode !== null || signalCode !== null ? [] : [pid]
  }

  /** Ends the worker. One that waits in the kernel for a server ends with that. */
  async close(): Promise<void> {
    this.#kept[Symbol.dispose]()
    const worker = this.#worker
    if (worker && this.workers().length > 0) {
      const timer = setTimeout(() => worker.kill('SIGKILL'), END_TIMEOUT_MS)
      await Promise.race([once(worker, 'exit'), new Promise((done) => setTimeout(done, 2 * END_TIMEOUT_MS).unref())])
      clearTimeout(timer)
    }
    fs.rmSync(this.#directory, { recursive: true, force: true })
  }
}
