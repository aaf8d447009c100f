import { type ChildProcess, spawn } from 'node:child_process'
import * as fs from 'node:fs'
import { Hopeless, until } from './until.ts'

/** A program of the node that goes on until it is stopped; each start has a log file of its own. */
export class Daemon {
  readonly #name: string
  readonly #logs: string
  readonly #command: readonly string[]
  readonly #env: NodeJS.ProcessEnv
  #child: ChildProcess | undefined
  #starts = 0

  constructor(name: string, logs: string, command: readonly string[], env: NodeJS.ProcessEnv) {
    this.#name = name
    this.#logs = logs
    this.#command = command
    this.#env = env
  }

  get logFile(): string {
    return `${this.#logs}/${this.#name}.${this.#starts}.log`
  }

  /** What it has written since its last start. */
  log(): string {
    return fs.readFileSync(this.logFile, 'utf8')
  }

  start(): void {
    this.#starts++
    const log = fs.openSync(this.logFile, 'w')
    const [program = '', ...args] = this.#command
    this.#child = spawn(program, args, { stdio: ['ignore', log, log], env: this.#env })
    fs.closeSync(log)
  }

  /** Sends the signal and waits for the end. */
  async stop(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    const child = this.#child
    if (!child || this.ended) return
    child.kill(signal)
    await until(`${this.#name} has ended`, () => this.ended)
  }

  /** Of the newest start; undefined before the first. */
  get pid(): number | undefined {
    return this.#child?.pid
  }

  get ended(): boolean {
    return this.#child === undefined || this.#child.exitCode !== null || this.#child.signalCode !== null
  }

  /** @throws {Hopeless} with its last words, if it is not running */
  mustRun(): void {
    if (this.ended) throw new Hopeless(`${this.#name} has ended:\n${this.log().split('\n').slice(-15).join('\n')}`)
  }
}
