import * as fs from 'node:fs'
import { look, nothingMore, type Quiet, sizeOf } from './leftovers.ts'
import { SoakNode } from './node.ts'
import { same, settles } from './odd.ts'
import type { Options } from './options.ts'
import { lookAtImage, play } from './round.ts'
import { type Scene, sceneOf } from './scene.ts'
import { Volumes } from './volumes.ts'
import { Watcher } from './watcher.ts'

/** Rounds between two looks at the quiet node. */
const LEG = 200

/** The final report. Sizes are bytes. */
export interface Report {
  seed: number
  rounds: number
  passed: number
  failed: number
  seconds: number
  pods: number
  kinds: Record<string, number>
  calls: SoakNode['counts']
  checkpoints: number
  state: { start: number; max: number; end: number }
  descriptors: { start: number; end: number }
  watcher: { descriptors: [number, number]; residentKiB: [number, number] }
  odd: string[]
}

/** Plays rounds on a node of its own. */
export class Soak {
  readonly report: Report
  readonly #options: Options
  readonly #node: SoakNode
  readonly #watcher: Watcher
  readonly #tell: (report: Report) => void
  #before: Quiet | undefined

  constructor(options: Options, tell: (report: Report) => void) {
    this.#options = options
    this.#node = new SoakNode()
    this.#watcher = new Watcher(this.#node.config)
    this.#tell = tell
    this.report = {
      seed: options.seed,
      rounds: options.rounds,
      passed: 0,
      failed: 0,
      seconds: 0,
      pods: 0,
      kinds: {},
      calls: this.#node.counts,
      checkpoints: 0,
      state: { start: 0, max: 0, end: 0 },
      descriptors: { start: 0, end: 0 },
      watcher: { descriptors: [0, 0], residentKiB: [0, 0] },
      odd: [],
    }
  }

  async run(): Promise<Report> {
    const { rounds } = this.#options
    const { report } = this
    const started = performance.now()
    await this.#begin()
    for (let first = 0; first < rounds; first += LEG) {
      await this.#leg(first, Math.min(first + LEG, rounds))
      report.seconds = (performance.now() - started) / 1000
    }
    await this.#end()
    return report
  }

  /** The first calls make directories and files that stay. */
  async #begin(): Promise<void> {
    const { report } = this
    fs.mkdirSync(`${this.#node.top}/pods`)
    await this.#node.heal()
    await settles(() => same('heal --watch', this.#watcher.use().descriptors.length > 10, true))
    await new Promise((done) => setTimeout(done, 500))
    this.#before = look(this.#node, this.#watcher)
    const { descriptors, residentKiB } = this.#watcher.use()
    report.state = { start: sizeOf(this.#node.state), max: 0, end: 0 }
    report.descriptors.start = this.#before.descriptors.length
    report.watcher = { descriptors: [descriptors.length, 0], residentKiB: [residentKiB, 0] }
  }

  /** Rounds on new volumes, several at a time, then a look at what they have left. */
  async #leg(first: number, end: number): Promise<void> {
    const lanes = Math.min(this.#options.lanes, end - first)
    const volumes = Array.from({ length: lanes }, (_, lane) => {
      const name = `from-${first}-lane-${lane}`
      return new Volumes(`${this.#node.volumes}/${name}`, `${this.#node.images}/${name}`)
    })
    let next = first
    await Promise.all(
      volumes.map(async (own) => {
        while (next < end) await this.#round(own, sceneOf(this.#options.seed + next++))
      }),
    )
    await this.#checkpoint(volumes, `after rounds ${first + 1} to ${end} (seeds from ${this.#options.seed + first})`)
    for (const { directory } of volumes) fs.rmSync(directory, { recursive: true })
  }

  async #round(volumes: Volumes, scene: Scene): Promise<void> {
    const { report } = this
    report.pods += scene.pods.length
    report.kinds[scene.kind] = (report.kinds[scene.kind] ?? 0) + 1
    try {
      await play(this.#node, volumes, scene)
      report.passed++
    } catch (error) {
      report.failed++
      this.#odd(`seed ${scene.seed}, ${scene.pods.length} pods, ${scene.kind}: ${words(error)}`)
    }
    report.state.max = Math.max(report.state.max, sizeOf(this.#node.state))
    this.#tell(report)
  }

  /** A failure of a checkpoint is one of the run's. */
  async #checkpoint(volumes: readonly Volumes[], when: string): Promise<void> {
    this.report.checkpoints++
    const check = async (work: () => unknown) => {
      try {
        await work()
      } catch (error) {
        this.report.failed++
        this.#odd(`${when}: ${words(error)}`)
      }
    }
    await check(() => this.#node.heal())
    await Promise.all(
      volumes.map(async (own, lane) => {
        await check(() => own.putBack(this.#node))
        // The first look may run the pending restore of a call that was killed.
        await check(() => lookAtImage(this.#node, own, `restores-${lane}`).catch(() => {}))
        await check(() => lookAtImage(this.#node, own, `looks-${lane}`))
      }),
    )
    const before = this.#before as Quiet
    await check(() => settles(() => nothingMore(look(this.#node, this.#watcher), before)))
    // Each fault is reported once.
    this.#before = { ...look(this.#node, this.#watcher), descriptors: before.descriptors, watchers: before.watchers }
  }

  async #end(): Promise<void> {
    const { report } = this
    const { descriptors, residentKiB } = this.#watcher.use()
    report.state.end = sizeOf(this.#node.state)
    report.descriptors.end = look(this.#node, this.#watcher).descriptors.length
    report.watcher.descriptors[1] = descriptors.length
    report.watcher.residentKiB[1] = residentKiB
    await this.#watcher.stop()
  }

  #odd(text: string): void {
    this.report.odd.push(text)
    this.#tell(this.report)
  }
}

function words(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
