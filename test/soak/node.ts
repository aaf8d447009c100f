import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import type { HealDocument } from '../../src/cli/commands/heal.ts'
import { parseMountinfo } from '../../src/kernel/mount-table/mountinfo.ts'
import { NodeDirectory } from '../helpers/node-directory.ts'
import { Odd, settles } from './odd.ts'

export type Verb = 'mount' | 'unmount' | 'heal'
type Reply = { status: string; message?: string }

// The duration of an undisturbed call; the measured one replaces it.
const FIRST_GUESS = 150
const LONGEST = 600_000

/** A node whose calls are counted, and killed when asked. */
export class SoakNode extends NodeDirectory {
  readonly counts = { calls: 0, killed: 0, refused: 0, daemonsKilled: 0, heals: 0 }
  readonly #usual: Record<Verb, number> = { mount: FIRST_GUESS, unmount: FIRST_GUESS, heal: FIRST_GUESS }

  constructor() {
    super()
    fs.mkdirSync(this.state)
    fs.mkdirSync(this.images)
    const config = {
      stateDir: this.state,
      logFile: this.log,
      logLevel: 'warn',
      allow: [
        { sources: [`${this.volumes}/*`], fsTypes: ['bind', 'tmpfs', 'fuse.bindfs'] },
        { sources: [`${this.images}/*`], fsTypes: ['ext4'] },
      ],
      helperTimeoutSeconds: 30,
    }
    fs.writeFileSync(this.config, JSON.stringify(config))
  }

  /** Where no pod can write. */
  get images(): string {
    return `${this.top}/images`
  }

  get config(): string {
    return `${this.top}/config.json`
  }

  /**
   * A call as kubelet makes it.
   * @param kill when to kill it, in parts of the time that such calls take
   * @returns undefined if it was killed
   * @throws {Odd} unless the answer is one document and the exit status 0
   */
  async ask(verb: 'mount' | 'unmount', args: readonly string[], kill?: number): Promise<Reply | undefined> {
    const ended = await this.#run(verb, args, kill)
    if (ended === undefined) return undefined
    const { text, code } = ended
    if (code !== 0 || !/^\{[^\n]*\}\n$/.test(text)) throw new Odd(`${verb} ended with ${code}: ${JSON.stringify(text)}`)
    return JSON.parse(text)
  }

  /** @returns what it found, undefined if it was killed @throws {Odd} if it fails */
  async heal(kill?: number): Promise<HealDocument['mounts'] | undefined> {
    this.counts.heals++
    const ended = await this.#run('heal', ['--json'], kill)
    if (ended === undefined) return undefined
    // 1: something could not be repaired now.
    if (ended.code !== 0 && ended.code !== 1) throw new Odd(`heal ended with ${ended.code}: ${ended.text}`)
    return JSON.parse(ended.text).mounts
  }

  /** Heals until it has repaired a mount: another heal may be at work on that, and be killed before it has. */
  async healWhole(directory: string): Promise<void> {
    await settles(async () => {
      const found = (await this.heal())?.find((mount) => mount.directory === directory)
      const isWell = found?.state === 'healthy' || found?.action === 'replaced' || found?.action === 'mounted'
      if (!isWell) throw new Odd(`heal of ${directory}: ${JSON.stringify(found)}`)
    })
  }

  async #run(verb: Verb, args: readonly string[], kill: number | undefined) {
    this.counts.calls++
    const started = performance.now()
    const { child, ended } = this.start([verb, ...args])
    const timers = [setTimeout(() => child.kill('SIGABRT'), LONGEST)]
    if (kill !== undefined) timers.push(setTimeout(() => child.kill('SIGKILL'), kill * this.#usual[verb]))
    const { text, code } = await ended
    for (const timer of timers) clearTimeout(timer)
    if (child.signalCode === 'SIGKILL') {
      this.counts.killed++
      return undefined
    }
    if (child.signalCode === 'SIGABRT') throw new Odd(`${verb} ${args[0]} did not end within ${LONGEST / 1000} s`)
    if (kill === undefined) this.#usual[verb] += (performance.now() - started - this.#usual[verb]) / 10
    return { text, code }
  }

  /** Puts a volume back by hand. @throws {Odd} if not all could be */
  async restore(directory: string): Promise<void> {
    const { text, code } = await this.start(['restore', directory, '--json']).ended
    if (code !== 0) throw new Odd(`restore ${directory} ended with ${code}: ${text}`)
  }

  directoryOf(pod: string): string {
    return `${this.top}/pods/${pod}/volumes/modekeep~fs/v`
  }
}

/** The mounts below a path, as one line each. */
export function mountsBelow(path: string): string[] {
  return parseMountinfo(fs.readFileSync('/proc/self/mountinfo', 'utf8'))
    .filter(({ mountPoint }) => mountPoint === path || mountPoint.startsWith(`${path}/`))
    .map(({ id, fsType, mountPoint }) => `${fsType} at ${mountPoint} (${id})`)
}

/**
 * Makes a file system in memory, and on it, in a file without a name, an ext4 one, which goes with its mount.
 * @returns where that is mounted
 */
export function makeDisk(place: string): string {
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'mode=0755', 'soak', place])
  const file = `${place}/disk`
  execFileSync('truncate', ['-s', '2G', file])
  execFileSync('mkfs.ext4', ['-q', '-F', '-N', '100000', file])
  fs.mkdirSync(`${place}/node`)
  execFileSync('mount', ['-o', 'loop', file, `${place}/node`])
  fs.unlinkSync(file)
  return `${place}/node`
}
