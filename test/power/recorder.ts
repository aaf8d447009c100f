import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import * as fs from 'node:fs'
import type { PowerCut } from './disk-log.ts'

/** `begin`: moments are counted from here. `end`: later writes are not part of the log. `show`: the disks of a moment. */
export type RecorderCommand = { do: 'begin' } | { do: 'end' } | { do: 'status' } | { do: 'show'; cut: PowerCut }

export interface RecorderReply {
  /** Number of events since `begin`. */
  events: number
  /** Indexes of those that are flushes. */
  flushes: number[]
}

const MAX_REPLY_BYTES = 1 << 20

/** The client of recorder-server.ts, which logs and replays the writes of all disks of a node. */
export class DiskRecorder {
  readonly #directory: string
  readonly #server: ChildProcess
  readonly #control: number

  private constructor(directory: string, server: ChildProcess) {
    this.#directory = directory
    this.#server = server
    this.#control = fs.openSync(`${directory}/control`, 'r+')
  }

  /**
   * Serves images as files of a directory, until `stop`.
   * @param images the image of each disk, by name
   */
  static async start(directory: string, images: Readonly<Record<string, string>>): Promise<DiskRecorder> {
    fs.mkdirSync(directory, { recursive: true })
    const disks = Object.entries(images).map(([name, image]) => `${name}=${image}`)
    const program = [process.execPath, `${import.meta.dirname}/recorder-server.ts`, directory, ...disks]
    const server = spawn('setpriv', ['--pdeathsig', 'KILL', ...program], { stdio: ['ignore', 'pipe', 'inherit'] })
    const [isServing] = await Promise.race([once(server.stdout, 'data'), once(server, 'close').then(() => [false])])
    if (isServing === false) throw new Error('the recorder did not start')
    return new DiskRecorder(directory, server)
  }

  run(command: RecorderCommand): RecorderReply {
    fs.writeSync(this.#control, JSON.stringify(command), 0)
    const reply = Buffer.alloc(MAX_REPLY_BYTES)
    return JSON.parse(reply.toString('utf8', 0, fs.readSync(this.#control, reply, 0, reply.length, 0)))
  }

  /** Call it when no disk is mounted. */
  async stop(): Promise<void> {
    fs.closeSync(this.#control)
    execFileSync('umount', ['--lazy', this.#directory])
    if (this.#server.exitCode !== null || this.#server.signalCode !== null) return
    const closed = once(this.#server, 'close')
    this.#server.kill('SIGKILL')
    await closed
  }
}
