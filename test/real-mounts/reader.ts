import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import * as fs from 'node:fs'
import { onTestFinished } from 'vitest'
import { type MountRow, parseMountinfo, selectMountLayers } from '../../src/kernel/mount-table/mountinfo.ts'
import { compile } from '../race/compile.ts'

/** The file that a reader reads, of a source or of what is mounted. */
export const READ_FILE = 'number'

/** What a reader reads from now on in this directory. Replaced in one step, like everything it may see. */
export function publish(directory: string, number: number): void {
  fs.mkdirSync(directory, { recursive: true })
  fs.writeFileSync(`${directory}/.new`, `${number}\n`)
  fs.renameSync(`${directory}/.new`, `${directory}/${READ_FILE}`)
}

/** A process that uses a mount directory all the time, as a pod does. */
export class Reader {
  readonly #child: ChildProcess
  readonly #ended: Promise<unknown>
  #text = ''

  /**
   * @param bare the directory before anything is mounted on it
   * @param command runs the reader, for example in another mount namespace
   */
  constructor(directory: string, bare: fs.Stats, command: readonly string[] = []) {
    const program = compile('real-mounts/reader.c')
    const [first = program, ...rest] = [...command, program]
    const args = [...rest, directory, READ_FILE, String(bare.dev), String(bare.ino)]
    this.#child = spawn(first, args, { stdio: ['ignore', 'pipe', 'inherit'] })
    this.#child.stdout?.on('data', (data) => {
      this.#text += data
    })
    this.#ended = once(this.#child, 'close')
    onTestFinished(() => {
      this.#child.kill('SIGKILL')
    })
  }

  async ready(): Promise<void> {
    while (!this.#text.includes('ready\n'))
      await once(this.#child.stdout as NonNullable<ChildProcess['stdout']>, 'data')
  }

  /** Kinds of faults so far. */
  get faults(): string[] {
    return this.#text.split('\n').filter((line) => /^[a-z]/i.test(line) && line !== 'ready')
  }

  /** What is mounted at a directory in the reader's mount namespace. */
  layers(directory: string): MountRow[] {
    return selectMountLayers(parseMountinfo(fs.readFileSync(`/proc/${this.#child.pid}/mountinfo`, 'utf8')), directory)
  }

  /** @returns how often it looked */
  async stop(): Promise<number> {
    this.#child.kill('SIGTERM')
    await this.#ended
    return Number(this.#text.trim().split('\n').at(-1))
  }
}
