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

  /** Ends when the actor is at work, or has failed: `stop` throws then. */
  async start(...args: string[]): Promise<void> {
    const child = spawn(this.#program, args, { stdio: ['ignore', 'pipe', 'inherit'] })
    let text = ''
    const begun = new Promise<void>((done) => {
      child.stdout.on('data', (data) => {
        text += data
        done()
      })
      child.on('close', () => done())
    })
    const ended = new Promise<{ code: number | null; rounds: number }>((done) =>
      child.on('close', (code) => done({ code, rounds: Number(text.split('\n')[1]) })),
    )
    this.#running.push({ child, ended })
    await begun
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
