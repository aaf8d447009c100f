import { type ChildProcess, spawn } from 'node:child_process'
import { onTestFinished } from 'vitest'
import { compile } from './compile.ts'

/** Processes that change a tree as fast as they can, at the same time as the test. */
export class Actors {
  readonly #program = compile('race/exchange.c')
  readonly #running: { child: ChildProcess; ended: Promise<{ code: number | null; rounds: number }> }[] = []

  constructor() {
    onTestFinished(() => {
      for (const { child } of this.#running) child.kill('SIGKILL')
    })
  }

  start(...args: string[]): void {
    const child = spawn(this.#program, args, { stdio: ['ignore', 'pipe', 'inherit'] })
    let text = ''
    child.stdout.on('data', (data) => {
      text += data
    })
    const ended = new Promise<{ code: number | null; rounds: number }>((done) =>
      child.on('close', (code) => done({ code, rounds: Number(text) })),
    )
    this.#running.push({ child, ended })
  }

  /**
   * Lets each put the tree back as it was, and end. Returns how many rounds each made.
   * @throws {Error} when one had ended before, as its calls failed
   */
  async stop(): Promise<number[]> {
    for (const { child } of this.#running) child.kill('SIGTERM')
    const ends = await Promise.all(this.#running.splice(0).map(({ ended }) => ended))
    if (ends.some(({ code }) => code !== 0)) throw new Error(`an actor failed: ${JSON.stringify(ends)}`)
    return ends.map(({ rounds }) => rounds)
  }
}
