import { type ChildProcess, spawn } from 'node:child_process'

/**
 * Has a script fetch and build what a later part of the run needs, while an earlier one runs. What it says, and whether it
 * fails, is told when it is waited for: the part that needs it tries again, and says what is wrong.
 */
export class BackgroundPreparation {
  readonly #child: ChildProcess
  readonly #ended: Promise<void>
  #said = ''

  constructor(node: string, script: string) {
    // The run ends last with the parts that need it, so vitest's tests wait for it. It ends with this process.
    const command = ['--pdeathsig', 'TERM', 'nice', '-n', '-5', node, script]
    this.#child = spawn('setpriv', command, { stdio: ['ignore', 'pipe', 'pipe'] })
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.on('data', (data) => {
        this.#said += data
      })
    }
    this.#ended = new Promise((done) => {
      this.#child.once('error', () => done())
      this.#child.once('close', () => done())
    })
  }

  /** @returns the output of the script, once it has ended */
  async done(): Promise<string> {
    await this.#ended
    return this.#said.trim()
  }

  stop(): void {
    this.#child.kill('SIGTERM')
  }
}
