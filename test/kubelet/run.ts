import * as fs from 'node:fs'
import { dirname } from 'node:path'
import { KUBERNETES_VERSION } from '../../scripts/fetch/kubernetes.ts'
import { readRuntimeVersions } from '../../scripts/fetch/packages.ts'
import { writeResults } from '../helpers/results.ts'
import { listFailures, printTally } from '../helpers/tally.ts'
import { CASES } from './cases/index.ts'
import { makeOwnPlace } from './confine/own-place.ts'
import { MODEKEEPS_LOG } from './node/drivers.ts'
import { StandaloneNode } from './node/node.ts'
import { Clock } from './report/clock.ts'
import { table } from './report/table.ts'
import { runTogether } from './together.ts'
import type { World } from './world.ts'

function keepLogs(place: string, directory: string): void {
  fs.mkdirSync(directory, { recursive: true })
  for (const source of [`${place}/logs`, dirname(MODEKEEPS_LOG)]) {
    if (fs.existsSync(source)) fs.cpSync(source, directory, { recursive: true })
  }
}

/** Runs all cases in this process's namespaces and prints their table. Returns whether one failed. */
export async function run(world: World): Promise<boolean> {
  const { options } = world
  const clock = new Clock((text) => console.log(text))
  clock.measure('disk, mounts and control groups of the run', () =>
    makeOwnPlace(world.place, world.cgroups, world.runtime.busybox),
  )
  const node = await clock.wait('containerd, kubelet and both drivers', () => StandaloneNode.start(world))
  try {
    return await runCases(world, node, clock)
  } finally {
    if (options.logs) keepLogs(world.place, options.logs)
  }
}

async function runCases({ options, runtime }: World, node: StandaloneNode, clock: Clock): Promise<boolean> {
  const asked = options.small ? CASES.filter((one) => one.small) : CASES
  const chosen = asked.filter(({ name }) => name.includes(options.only))
  if (chosen.length === 0) throw new Error(`--only: no case has "${options.only}" in its name`)
  const inOrder = await runTogether(chosen, node, options.files, clock)
  // What a small run leaves to the whole one is not skipped.
  const skipped = asked.length - chosen.length
  console.log(`\n${table(inOrder, skipped)}`)
  const failures = listFailures('test:kubelet', inOrder)
  const failed = failures.length
  const passed = inOrder.length - failed
  if (options.results) {
    const tally = { passed, failed, skipped: CASES.length - chosen.length, failures }
    writeResults(options.results, 'test:kubelet', tally, {
      kubernetes: KUBERNETES_VERSION,
      ...readRuntimeVersions(runtime),
    })
  }
  printTally({ passed, failed, skipped, failures })
  return failed > 0
}
