import * as fs from 'node:fs'
import { writeResults } from '../helpers/results.ts'
import { listFailures, printTally } from '../helpers/tally.ts'
import { makeOwnPlace } from '../kubelet/confine/own-place.ts'
import { Clock } from '../kubelet/report/clock.ts'
import type { Outcome } from './on-runtime.ts'
import { runOnSuite } from './on-suite.ts'
import { report } from './report.ts'
import type { RuntimeWorld, World } from './world.ts'

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
    await clock.wait(`containerd ${suite.containerd}, runc ${suite.runc}`, async () => {
      try {
        outcomes.push(await runOnSuite(`${import.meta.dirname}/on-runtime.ts`, given))
      } finally {
        keepLogs(own, options.logs && `${options.logs}/${suite.suite}`)
      }
    })
  }
  console.log(`\n${report(outcomes, world.lacking)}`)
  const results = outcomes.flatMap((one) => one.results)
  const failures = listFailures('test:nri', results)
  const failed = failures.length
  const skipped = outcomes.reduce((all, { unasked, unable }) => all + unasked + unable.length, world.lacking.length)
  const tally = { passed: results.length - failed, failed, skipped, failures }
  if (options.results) {
    const all = (key: 'containerd' | 'runc') => outcomes.map((outcome) => outcome[key])
    writeResults(options.results, 'test:nri', tally, { containerd: all('containerd'), runc: all('runc') })
  }
  printTally(tally)
  return failed > 0
}

function keepLogs(place: string, directory: string): void {
  if (!directory) return
  fs.mkdirSync(directory, { recursive: true })
  for (const logs of [`${place}/logs`, `${place}/var/log/modekeep`, `${place}/var/log/pods`]) {
    if (fs.existsSync(logs)) fs.cpSync(logs, directory, { recursive: true })
  }
}
