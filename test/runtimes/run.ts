import * as fs from 'node:fs'
import { release } from 'node:os'
import { runConfined } from '../helpers/own-namespaces.ts'
import { closeWith } from '../helpers/tally.ts'
import { makeOwnPlace } from '../kubelet/confine/own-place.ts'
import { Clock } from '../kubelet/report/clock.ts'
import type { Outcome } from './on-runtime.ts'
import { report } from './report.ts'
import type { RuntimeWorld, World } from './world.ts'

// A runtime's processes and mounts go with it.
const NAMESPACES = [
  '--pid',
  '--fork',
  '--kill-child',
  '--mount-proc',
  '--mount',
  '--propagation',
  'private',
  '--net',
  '--ipc',
]
const INSIDE = `${import.meta.dirname}/../kubelet/confine/inside.ts`

/** Runs all cases on each of the runtimes, one after the other, and prints their table. Returns whether one failed. */
export async function run(world: World): Promise<boolean> {
  const { place, options } = world
  const clock = new Clock((text) => console.log(text))
  clock.measure('disk, mounts and control groups', () => makeOwnPlace(place, world.cgroups, world.busybox))
  const outcomes: Outcome[] = []
  for (const suite of world.suites) {
    const own = `${place}/${suite.suite}`
    const given: RuntimeWorld = {
      place: own,
      busybox: world.busybox,
      suite,
      only: options.only,
      results: `${own}.json`,
    }
    const inside = [process.execPath, INSIDE, `${import.meta.dirname}/on-runtime.ts`, JSON.stringify(given)]
    await clock.wait(`containerd ${suite.containerd}, runc ${suite.runc}`, async () => {
      try {
        await runConfined(['unshare', ...NAMESPACES, ...inside], process.env)
      } finally {
        keepLogs(own, options.logs && `${options.logs}/${suite.suite}`)
      }
    })
    if (!fs.existsSync(given.results)) throw new Error(`no case was run on containerd ${suite.containerd}`)
    outcomes.push(JSON.parse(fs.readFileSync(given.results, 'utf8')))
  }
  console.log(`\n${report(outcomes, world.lacking)}`)
  const results = outcomes.flatMap((one) => one.results)
  const failed = results.filter(({ failure }) => failure !== undefined).length
  const skipped = outcomes.reduce((all, { unasked, unable }) => all + unasked + unable.length, world.lacking.length)
  const tally = { passed: results.length - failed, failed, skipped }
  if (options.results)
    fs.writeFileSync(options.results, `${JSON.stringify({ kernel: release(), outcomes }, null, 2)}\n`)
  closeWith(tally)
  return failed > 0
}

function keepLogs(place: string, directory: string): void {
  if (!directory) return
  fs.mkdirSync(directory, { recursive: true })
  for (const logs of [`${place}/logs`, `${place}/var/log/modekeep`, `${place}/var/log/pods`]) {
    if (fs.existsSync(logs)) fs.cpSync(logs, directory, { recursive: true })
  }
}
