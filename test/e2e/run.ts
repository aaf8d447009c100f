import * as fs from 'node:fs'
import { readRuntimeVersions } from '../../scripts/fetch/packages.ts'
import { type Cluster, startCluster } from '../cluster/plane/cluster.ts'
import { applyRelease } from '../cluster/plane/release.ts'
import { writeResults } from '../helpers/results.ts'
import { formatFailure, printTally } from '../helpers/tally.ts'
import { makeOwnPlace } from '../kubelet/confine/own-place.ts'
import { Clock } from '../kubelet/report/clock.ts'
import { writeDriver } from './driver.ts'
import { giveImages } from './images.ts'
import { startProvisioner } from './provisioner.ts'
import { QUICK, reasonFor } from './reasons.ts'
import type { Spec } from './report.ts'
import { listSpecs, runSpecs } from './suite.ts'
import type { World } from './world.ts'

/** Runs the suite in this process's namespaces. Returns whether a spec failed, or was skipped without a reason. */
export async function run(world: World): Promise<boolean> {
  const clock = new Clock((text) => console.log(text))
  const { place, programs, cgroups, options } = world
  clock.measure('disk, mounts and control groups', () => makeOwnPlace(place, cgroups, programs.runtime.busybox))
  const logs = `${place}/logs`
  try {
    const cluster = await clock.wait('a cluster', () => startCluster(world))
    await clock.wait('the driver', () => applyRelease(cluster))
    giveImages(world, cluster)
    const driver = `${place}/driver.json`
    writeDriver(driver, cluster.volumes)
    const listed = await listSpecs(world, driver)
    const chosen = choose(listed, world)
    const stop = startProvisioner(cluster)
    const specs = await clock
      .wait(`${chosen.length} specs`, () => runSpecs(world, driver, chosen, logs))
      .finally(() => stop())
    return report(world, cluster, listed, specs)
  } finally {
    if (options.logs) {
      for (const from of [logs, '/var/log/modekeep']) {
        if (fs.existsSync(from)) fs.cpSync(from, options.logs, { recursive: true })
      }
    }
  }
}

function choose(listed: readonly string[], { options }: World): string[] {
  const all = listed.filter((name) => reasonFor(name) === undefined)
  const some = options.quick ? all.filter((name) => QUICK.some((text) => name.includes(text))) : all
  const chosen = some.filter((name) => name.includes(options.focus))
  console.log(`${listed.length} specs are listed, ${all.length} apply, ${chosen.length} are run`)
  if (chosen.length === 0) throw new Error(`no spec has "${options.focus}" in its name`)
  return chosen
}

function report(
  { options, programs }: World,
  { version }: Cluster,
  listed: readonly string[],
  specs: readonly Spec[],
): boolean {
  // The suite gives a reason for each spec that it skips by itself.
  const isSkipped = ({ verdict, skipped }: Spec) => verdict === 'skipped' && skipped !== undefined
  const skipped = specs.filter(isSkipped)
  const failed = specs.filter((spec) => spec.verdict !== 'passed' && !isSkipped(spec))
  for (const { name, verdict, seconds, failure, skipped: why } of specs) {
    const title = name.replace(/^.*?Testpattern: /, '')
    console.log(`${verdict}  ${seconds.toFixed(0)} s  ${title}${why === undefined ? '' : `: ${why}`}`)
    if (failure !== undefined) console.log(failure.split('\n').slice(0, 12).join('\n'))
  }
  const passed = specs.length - failed.length - skipped.length
  const failures = failed.map(({ name, failure = '' }) => formatFailure(`test:e2e: ${name}`, failure))
  const tally = { passed, failed: failed.length, skipped: skipped.length, failures }
  if (options.results) {
    const versions = { kubernetes: version.replace(/^v/, ''), ...readRuntimeVersions(programs.runtime) }
    writeResults(
      options.results,
      'test:e2e',
      { ...tally, skipped: listed.length - specs.length + skipped.length },
      versions,
    )
  }
  printTally(tally)
  return failed.length > 0
}
