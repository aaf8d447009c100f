import * as fs from 'node:fs'
import { resolve } from 'node:path'
import { makeOwnPlace } from '../../test/kubelet/confine/own-place.ts'
import { runOnSuite } from '../../test/runtimes/on-suite.ts'
import type { RuntimeWorld, World } from '../../test/runtimes/world.ts'
import { describeMachine } from '../machine.ts'
import type { Options } from '../options.ts'
import { drawAnyVolume } from '../plot/any-volume.ts'
import type { AnyVolume, Measured } from './results.ts'
import { table } from './table.ts'

const RESULTS = resolve(import.meta.dirname, '../results')

/** What the measuring process gets beside the runtime's world. */
export interface Bench extends RuntimeWorld {
  /** A program around kubelet's walk. */
  walk: string
  sizes: number[]
  rounds: number
}

type Given = Omit<World, 'options'> & { walk: string; options: Options }

/** Measures, writes bench/results/any-volume.json and .svg, and prints a table. Never returns that something failed. */
export async function run({ place, cgroups, busybox, suites, walk, options }: Given): Promise<boolean> {
  makeOwnPlace(place, cgroups, busybox)
  const [suite] = suites
  if (suite === undefined) throw new Error('no runtime')
  const own = `${place}/${suite.suite}`
  const sizes = [1000, 100_000, ...(options.full ? [1_000_000] : [])]
  const world: Bench = {
    place: own,
    busybox,
    suite,
    only: '',
    results: `${own}.json`,
    walk,
    sizes,
    rounds: options.rounds,
  }
  const measured = await runOnSuite<Measured>(`${import.meta.dirname}/measure.ts`, world)
  const results: AnyVolume = { machine: describeMachine(place), containerd: suite.containerd, ...measured }
  fs.mkdirSync(RESULTS, { recursive: true })
  fs.writeFileSync(`${RESULTS}/any-volume.json`, `${JSON.stringify(results, null, 2)}\n`)
  fs.writeFileSync(`${RESULTS}/any-volume.svg`, drawAnyVolume(results))
  process.stdout.write(table(results))
  console.log('Written: bench/results/any-volume.json and any-volume.svg')
  return false
}
