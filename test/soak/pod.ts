import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { locateMountRecords, RECORD_FILE } from '../../src/state/record-directories.ts'
import { mountsBelow, type SoakNode } from './node.ts'
import { Odd, same, settles } from './odd.ts'
import type { Event, Kind, PodPlan } from './scene.ts'
import { mustShow, WRITTEN } from './shown.ts'
import type { Volumes } from './volumes.ts'

const TRIES = 14
const LONGEST_PAUSE = 800
/** modekeep refuses an unmount for up to a minute while its file system is in use, and this much more is a busy machine's. */
const FILE_SYSTEM_RELEASE_MS = 90_000
const IN_THE_WAY = /the volume belongs to group \d+ while pod/

/** What the kubelet does for one volume of one pod, and what befalls it. */
export class PodLife {
  readonly #node: SoakNode
  readonly #volumes: Volumes
  readonly #kind: Kind
  readonly #plan: PodPlan
  /** Another group may stand in the way. */
  readonly #mayBeRefused: boolean
  readonly #directory: string
  readonly #options: string
  #isServed = true
  #isUp = false
  #daemonsKilled = 0
  /** When it was mounted last, and when its end began. */
  #mountedAt = 0
  #leftAt = 0

  constructor(node: SoakNode, volumes: Volumes, kind: Kind, plan: PodPlan, mayBeRefused: boolean) {
    this.#node = node
    this.#volumes = volumes
    this.#kind = kind
    this.#plan = plan
    this.#mayBeRefused = mayBeRefused
    this.#directory = node.directoryOf(plan.name)
    this.#options = JSON.stringify({
      ...volumes.options(kind, plan),
      'kubernetes.io/readwrite': 'rw',
      'kubernetes.io/pvOrVolumeName': 'v',
      'kubernetes.io/pod.name': plan.name,
      'kubernetes.io/pod.namespace': 'soak',
    })
  }

  /** @throws {Odd} after the pod was taken away again, if that is possible */
  async live(): Promise<void> {
    await sleep(this.#plan.after)
    try {
      this.#isUp = await this.#setUp()
      if (!this.#isUp) return
      for (const { what, kill } of this.#plan.events) {
        await this.#happens(what, kill).catch((error) => {
          throw new Odd(`after "${what}": ${error instanceof Error ? error.message : error}`, { cause: error })
        })
      }
    } finally {
      this.#leftAt = performance.now()
      await this.#tearDown()
    }
  }

  /**
   * Whether its volume must be as before when all of these have lived: it has asked for that while the mounts of those
   * that did not ask were there for good, so that the last of all had to restore. What is mounted later has none pending: a mount
   * whose unmount was killed may be gone when this pod's restore is paid, and mounted again by heal.
   */
  hasRestorePending(all: readonly PodLife[]): boolean {
    const isOverBefore = (pod: PodLife) => pod.#mountedAt < this.#leftAt && pod.#plan.unmountKills.length === 0
    const isPaid = (pod: PodLife) => !pod.#isUp || pod.#plan.restores || isOverBefore(pod)
    return this.#isUp && this.#plan.restores && all.every(isPaid)
  }

  /** Calls until it is mounted, or gives up a volume that another group has. */
  async #setUp(): Promise<boolean> {
    const kills = [...this.#plan.mountKills]
    for (let tries = 0; tries < TRIES; tries++) {
      // A file, if heal has mounted what a call that was killed was to mount.
      if (!isThere(this.#directory)) fs.mkdirSync(this.#directory, { recursive: true, mode: 0o750 })
      const reply = await this.#mount(kills.shift())
      if (reply?.status === 'Success') {
        if (this.#kind === 'tmpfs') fs.writeFileSync(`${this.#directory}/marker`, '')
        await this.#shows()
        this.#mountedAt = performance.now()
        return true
      }
      if (reply) this.#mustBeInTheWay(reply.message ?? '')
      if (reply || this.#plan.tidies) remove(this.#directory)
      if (reply) await sleep(Math.min(100 * 1.5 ** tries, LONGEST_PAUSE))
    }
    if (!this.#mayBeRefused) throw new Odd(`${this.#directory} could not be mounted`)
    return false
  }

  #mustBeInTheWay(message: string): void {
    this.#node.counts.refused++
    if (!this.#mayBeRefused || !IN_THE_WAY.test(message)) throw new Odd(`mount ${this.#directory} failed: ${message}`)
  }

  #mount(kill?: number) {
    return this.#node.ask('mount', [this.#directory, this.#options], kill)
  }

  async #happens(event: Event, kill: number): Promise<void> {
    if (!this.#isServed) return
    switch (event) {
      case 'call again':
        await this.#again()
        break
      case 'call again, killed':
        await this.#mount(kill)
        break
      case 'write':
        fs.appendFileSync(`${this.#directory}/${WRITTEN[this.#kind]}`, 'more\n')
        break
      case 'heal':
        await this.#node.heal()
        break
      case 'heal, killed':
        await this.#node.heal(kill)
        break
      case 'flip':
        this.#volumes.flip()
        break
      case 'lose':
        // What is lost holds its volume no more: another group may have it at once.
        if (this.#mayBeRefused) break
        execFileSync('umount', ['--lazy', this.#directory])
        await this.#repaired(kill)
        break
      case 'kill daemon':
        await this.#killDaemon()
        this.#node.counts.daemonsKilled++
        this.#daemonsKilled++
        await this.#repaired(kill)
        break
      case 'stop daemon':
        // Its directory can no longer be inspected.
        this.#isServed = false
        this.#stopDaemon()
        return
    }
    await this.#shows()
    if (event === 'lose') this.#mountedAt = performance.now()
  }

  /** As after a restart of kubelet's. */
  async #again(): Promise<void> {
    const reply = await this.#mount()
    if (reply?.status !== 'Success') throw new Odd(`a repeated mount of ${this.#directory} failed: ${reply?.message}`)
  }

  async #repaired(kill: number): Promise<void> {
    if (kill < 0.5) await this.#node.healWhole(this.#directory)
    else await this.#again()
  }

  /** What heal is just replacing has two layers for a moment. */
  async #shows(): Promise<void> {
    await settles(() => {
      // A FUSE mount has its guard below it, and what calls that died while they replaced it have put there.
      const layers = mountsBelow(this.#directory)
      const hidden = layers.length - (this.#kind === 'fuse' ? 2 : 1)
      if (hidden < 0 || hidden > this.#daemonsKilled) throw new Odd(`layers: ${layers.join(', ')}`)
      mustShow(this.#directory, this.#kind, this.#plan, this.#volumes)
    })
    if (this.#kind === 'fuse') this.#daemonMustHoldNothing()
  }

  async #tearDown(): Promise<void> {
    const kills = [...this.#plan.unmountKills]
    const until = performance.now() + FILE_SYSTEM_RELEASE_MS
    for (;;) {
      // Kubelet knows volumes by their directories.
      if (!isThere(this.#directory)) return
      const reply = await this.#node.ask('unmount', [this.#directory], kills.shift())
      if (reply?.status === 'Success') break
      // A killed call keeps its file system in use until its last thread has ended.
      if (reply?.message?.endsWith('[unmount-busy]') && performance.now() < until) await sleep(1000)
      else if (reply) throw new Odd(`unmount ${this.#directory} failed: ${reply.message}`)
    }
    same('mounts after the unmount', mountsBelow(this.#directory), [])
    fs.rmdirSync(this.#directory)
    fs.rmSync(`${this.#node.top}/pods/${this.#plan.name}`, { recursive: true })
  }

  #daemon(): number | undefined {
    const record = `${locateMountRecords({ config: { stateDir: this.#node.state } }, this.#directory).path}/${RECORD_FILE}`
    const { staging } = JSON.parse(fs.readFileSync(record, 'utf8'))
    return fs
      .readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .map(Number)
      .find((pid) => read(`/proc/${pid}/cmdline`).split('\0').includes(`${this.#node.state}/staging/${staging}/mount`))
  }

  #stopDaemon(): void {
    const pid = this.#daemon()
    if (pid !== undefined) process.kill(pid, 'SIGSTOP')
  }

  /** Until the last of its threads has gone, its mount still looks well. */
  async #killDaemon(): Promise<void> {
    const pid = this.#daemon()
    if (pid === undefined) return
    process.kill(pid, 'SIGKILL')
    await settles(() => same(`threads of the daemon of ${this.#directory}`, runningThreads(pid), []))
  }

  /** Nothing of the call that started it: kubelet would wait for the end of a pipe, the next call for a lock. */
  #daemonMustHoldNothing(): void {
    const pid = this.#daemon()
    if (pid === undefined) return
    const held = list(`/proc/${pid}/fd`).map((name) => link(`/proc/${pid}/fd/${name}`))
    const wrong = held.filter(
      (path) => !INHERITED.has(path) && /^pipe:|^socket:|\.lock|\/lock\b|\.json|journal|\.log\b/.test(path),
    )
    same(`what the daemon of ${this.#directory} holds open`, wrong, [])
  }
}

// Descriptors that the starter of the run left open are inherited by every process.
const INHERITED = new Set(fs.readdirSync('/proc/1/fd').map((name) => fs.readlinkSync(`/proc/1/fd/${name}`)))

const quiet =
  <T>(work: (path: string) => T, otherwise: T) =>
  (path: string): T => {
    try {
      return work(path)
    } catch {
      return otherwise
    }
  }
const read = quiet((path) => fs.readFileSync(path, 'utf8'), '')
const list = quiet((path) => fs.readdirSync(path), [])
const link = quiet((path) => fs.readlinkSync(path), '')
const remove = quiet((path) => fs.rmdirSync(path), undefined)

function runningThreads(pid: number): string[] {
  return list(`/proc/${pid}/task`).filter((thread) => /\) [^ZX]/.test(read(`/proc/${pid}/task/${thread}/stat`)))
}

/** Asks nothing of what is mounted there: its daemon may hang. */
const isThere = (path: string) => mountsBelow(path).length > 0 || fs.existsSync(path)
