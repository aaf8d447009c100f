import { type ChildProcess, spawn } from 'node:child_process'
import * as fs from 'node:fs'
import { BINARY } from '../helpers/node-directory.ts'
import { Odd } from './odd.ts'

/** `modekeep heal --watch`, the one process of modekeep's that stays. */
export class Watcher {
  readonly #child: ChildProcess

  constructor(config: string) {
    const env = { PATH: process.env.PATH, MODEKEEP_CONFIG: config }
    this.#child = spawn(BINARY, ['heal', '--watch'], { env, stdio: ['ignore', 'ignore', 'inherit'] })
  }

  get pid(): number {
    return this.#child.pid ?? -1
  }

  /** @throws {Odd} if it has ended */
  use(): { descriptors: string[]; residentKiB: number } {
    const { exitCode, signalCode } = this.#child
    if (exitCode !== null || signalCode !== null) throw new Odd(`heal --watch has ended: ${signalCode ?? exitCode}`)
    const [, kibibytes] = /^VmRSS:\s*(\d+) kB/m.exec(fs.readFileSync(`/proc/${this.pid}/status`, 'utf8')) ?? []
    return { descriptors: descriptorsOf(this.pid), residentKiB: Number(kibibytes) }
  }

  async stop(): Promise<void> {
    const ended = new Promise((done) => this.#child.once('exit', done))
    this.#child.kill('SIGTERM')
    await ended
  }
}

/** What a process has open, by what it leads to. */
export function descriptorsOf(pid: number | 'self'): string[] {
  return fs.readdirSync(`/proc/${pid}/fd`).flatMap((name) => {
    try {
      return fs.readlinkSync(`/proc/${pid}/fd/${name}`)
    } catch {
      // That of the listing itself, or closed since.
      return []
    }
  })
}
