import { type ChildProcess, spawn } from 'node:child_process'

/**
 * Has scripts fetch and build what later parts of the run need, one after the other, while an earlier part runs. The output
 * of a script, and whether it fails, is reported when it is waited for: the part that needs it tries again, and reports what
 * is wrong.
 */
export class BackgroundPreparation {
  readonly #node: string
  readonly #ended: Promise<string>[] = []
  #child: ChildProcess | undefined
  #isStopped = false

  constructor(node: string, scripts: readonly string[]) {
    this.#node = node
    let before: Promise<unknown> = Promise.resolve()
    for (const script of scripts) {
      const ended = before.then(() => this.#run(script))
      this.#ended.push(ended)
      before = ended
    }
  }

  #run(script: string): Promise<string> {
    if (this.#isStopped) return Promise.resolve('')
    // The run ends last with the parts that need it, so vitest's tests wait for it. It ends with this process.
    const command = ['--pdeathsig', 'TERM', 'nice', '-n', '-5', this.#node, script]
    const child = spawn('setpriv', command, { stdio: ['ignore', 'pipe', 'pipe'] })
    this.#child = child
    let output = ''
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (data) => {
        output += data
      })
    }
    return new Promise((done) => {
      child.once('error', () => done(output.trim()))
      child.once('close', () => done(output.trim()))
    })
  }

  /** @returns the output of the script at an index, once it has ended; of the last one if there are fewer */
  async done(at: number): Promise<string> {
    return (await this.#ended[Math.min(at, this.#ended.length - 1)]) ?? ''
  }

  stop(): void {
    this.#isStopped = true
    this.#child?.kill('SIGTERM')
  }
}
