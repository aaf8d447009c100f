import * as fs from 'node:fs'
import { readRuntimeVersions } from '../../scripts/fetch/packages.ts'
import { writeResults } from '../helpers/results.ts'
import { listFailures, printTally } from '../helpers/tally.ts'
import { ANYWHERE } from '../kubelet/cases/index.ts'
import { makeOwnPlace } from '../kubelet/confine/own-place.ts'
import { Clock } from '../kubelet/report/clock.ts'
import { type Result, table } from '../kubelet/report/table.ts'
import { runTogether } from '../kubelet/together.ts'
import type { Case } from './cases/case.ts'
import { CASES } from './cases/index.ts'
import { cleanUp } from './plane/clean.ts'
import { type Cluster, startCluster } from './plane/cluster.ts'
import { nodeOf } from './plane/node.ts'
import { applyRelease } from './plane/release.ts'
import type { World } from './world.ts'

/** So many that their walk takes longer than it takes to kill a kubelet. */
const FILES = 300_000

/** Runs all cases in this process's namespaces, test:kubelet's with pods of the API server first, and prints their table. Returns whether one failed. */
export async function run(world: World): Promise<boolean> {
  const clock = new Clock((text) => console.log(text))
  const { place, programs, cgroups, options } = world
  clock.measure('disk, mounts and control groups', () => makeOwnPlace(place, cgroups, programs.runtime.busybox))
  try {
    const cluster = await clock.wait('a cluster', () => startCluster(world))
    await clock.wait('the driver', () => applyRelease(cluster))
    return await runCases(world, cluster, clock)
  } finally {
    if (options.logs) {
      fs.mkdirSync(options.logs, { recursive: true })
      for (const logs of [`${place}/logs`, '/var/log/modekeep', '/var/log/pods']) {
        if (fs.existsSync(logs)) fs.cpSync(logs, options.logs, { recursive: true })
      }
    }
  }
}

async function runCases({ options, programs }: World, cluster: Cluster, clock: Clock): Promise<boolean> {
  const isChosen = ({ name }: { name: string }) => name.includes(options.only)
  const [onNode, chosen] = [ANYWHERE.filter(isChosen), CASES.filter(isChosen)]
  if (onNode.length + chosen.length === 0) throw new Error(`--only: no case has "${options.only}" in its name`)
  const results = onNode.length === 0 ? [] : await runTogether(onNode, nodeOf(cluster), FILES, clock)
  if (results.some(({ failure }) => failure !== undefined)) console.log(await cleanUpAfterFailure(cluster))
  const lacking: string[] = []
  for (const one of chosen) {
    const why = reason(one, cluster)
    if (why !== undefined) {
      lacking.push(one.name)
      console.log(`not run: ${one.name}: ${why}, this is ${cluster.version}; give newer programs by --kubernetes DIR`)
    } else results.push(await clock.wait(one.name, () => result(one, cluster)))
  }
  const unasked = ANYWHERE.length - onNode.length + CASES.length - chosen.length
  console.log(`\n${table(results, unasked)}`)
  const failures = listFailures('test:cluster', results)
  const failed = failures.length
  const passed = results.length - failed
  const tally = { passed, failed, skipped: lacking.length + unasked, failures }
  if (options.results) {
    const versions = { kubernetes: cluster.version.replace(/^v/, ''), ...readRuntimeVersions(programs.runtime) }
    writeResults(options.results, 'test:cluster', tally, versions)
  }
  printTally(tally)
  return failed > 0
}

/** Why a case cannot be run on this kubelet; undefined if it can. */
function reason({ needs, before, lacks }: Case, cluster: Cluster): string | undefined {
  if (needs !== undefined && !cluster.atLeast(needs)) return `needs kubelet ${needs}`
  if (before !== undefined && cluster.atLeast(before)) return `is of kubelets before ${before}`
  return lacks?.(cluster)
}

async function result(one: Case, cluster: Cluster): Promise<Result> {
  const before = performance.now()
  const seconds = () => (performance.now() - before) / 1000
  try {
    const seen = await one.run(cluster)
    return { name: one.name, seconds: seconds(), seen: { modekeep: seen } }
  } catch (error) {
    const failure = error instanceof Error ? (error.stack ?? error.message) : String(error)
    return { name: one.name, seconds: seconds(), failure: `${failure}\n${await cleanUpAfterFailure(cluster)}` }
  }
}

/** Without it the cases that follow a failed one would fail too. */
const cleanUpAfterFailure = (cluster: Cluster): Promise<string> =>
  cleanUp(cluster).then(
    () => 'the node was cleaned up for the next case',
    (error) => `the next cases may fail for what is left: ${error.message}`,
  )
