import { spawn } from 'node:child_process'
import * as fs from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { type Ended, type FaultPoint, type Program, runToEnd } from '../helpers/inject.ts'
import { ResidentWorker } from '../helpers/resident-worker.ts'
import { parseTrace, type TracedCall } from '../helpers/strace-text.ts'
import type { Fault } from './fault.ts'
import type { InjectedRun, Injector } from './injector.ts'
import type { Scenario } from './scenario.ts'

/** A busy machine may take longer than the loader waits for the worker to accept the call. */
const TRACE_ATTEMPTS = 5

/**
 * The command is a call that the loader hands to a worker which is running. strace is attached to the worker for that call alone, and
 * counts from there: so faults befall all that the worker does from accepting the connection to closing it. The loader
 * itself and a call that it makes in its own process after the worker failed run without faults. A worker that survives
 * makes the calls that follow, and those of the next faults.
 */
export class ResidentInjector implements Injector {
  #worker: ResidentWorker | undefined
  #scenario: Scenario | undefined

  async prepare(scenario: Scenario): Promise<void> {
    this.#scenario = scenario
    if (!this.#worker?.isAlive) {
      // The first call of a worker makes other system calls than a later one.
      await scenario.prepare()
      await this.call(scenario.program())
    }
    await scenario.prepare()
  }

  /** Hands a call to the worker, which is started where there is none. */
  async call(program: Program): Promise<Ended> {
    const { socket } = await this.#running(program)
    return runToEnd({ ...program, env: { ...program.env, MODEKEEP_SOCKET: socket } })
  }

  async #running(program: Program): Promise<ResidentWorker> {
    if (this.#worker?.isAlive) return this.#worker
    await this.#worker?.close()
    this.#worker = new ResidentWorker(program.env.MODEKEEP_CONFIG ?? '')
    await this.#worker.untilListening()
    return this.#worker
  }

  async trace(program: Program): Promise<{ ended: Ended; calls: TracedCall[] }> {
    for (let attempt = 1; ; attempt++) {
      const { ended, calls } = await this.#callUnderStrace(program, ['-e', 'signal=none'])
      if (attempt === TRACE_ATTEMPTS || hasAnswered(calls)) return { ended, calls }
      if (this.#scenario) await this.prepare(this.#scenario)
    }
  }

  async inject(program: Program, { name, when }: FaultPoint, fault: Fault, also: string): Promise<InjectedRun> {
    const how =
      fault.name === 'KILL' ? `signal=KILL:when=${when}` : `error=${fault.name}:when=${when}${fault.lasts ? '+' : ''}`
    const what = ['-e', `trace=${name}${also && `,${also}`}`, '-e', `inject=${name}:${how}`]
    const { ended, calls, text } = await this.#callUnderStrace(program, what)
    const reached = fault.name === 'KILL' ? / killed by SIGKILL /.test(text) : text.includes('(INJECTED)')
    return { ended, reached, calls }
  }

  async #callUnderStrace(program: Program, options: readonly string[]) {
    const worker = await this.#running(program)
    const file = `${program.top}/trace`
    const strace = spawn('strace', ['-f', '-y', ...options, '-o', file, '-p', String(worker.pid)], {
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    const straceEnded = new Promise((done) => strace.once('close', done))
    await untilAttached(strace.stderr)
    const ended = await this.call(program)
    const text = await this.#detach(worker, file, () => strace.kill('SIGINT'), straceEnded)
    return { ended, text, calls: parseTrace(text) }
  }

  async #detach(worker: ResidentWorker, file: string, stop: () => void, stopped: Promise<unknown>): Promise<string> {
    // A report to heal that failed: heal kills a worker whose reports stop during a call.
    if (/^\d+ +write\(1<.*\(INJECTED\)$/m.test(fs.readFileSync(file, 'utf8'))) await worker.kill()
    await worker.untilIdle()
    await delay(CLOSING_MS)
    stop()
    await stopped
    const text = fs.readFileSync(file, 'utf8')
    fs.rmSync(file)
    return text
  }

  async close(): Promise<void> {
    await this.#worker?.close()
    this.#worker = undefined
  }
}

/** Whether the loader has waited for the worker's reply. */
function hasAnswered(calls: readonly TracedCall[]): boolean {
  return calls.some(({ text }) => /^shutdown\(\d+<socket:/.test(text))
}

/** After its reply the worker closes the connection. */
const CLOSING_MS = 5

/** strace names the process to which it is attached, then all its threads are. */
function untilAttached(stderr: NodeJS.ReadableStream): Promise<void> {
  return new Promise((done, fail) => {
    let text = ''
    stderr.on('data', (data) => {
      text += data
      if (text.includes(' attached')) done()
    })
    stderr.once('end', () => fail(new Error(`strace cannot attach: ${text}`)))
  })
}
