import * as fs from 'node:fs'
import { dirname } from 'node:path'
import { KUBERNETES_VERSION } from '../../scripts/fetch/kubernetes.ts'
import { versionsOf } from '../../scripts/fetch/packages.ts'
import { writeResults } from '../helpers/results.ts'
import { closeWith } from '../helpers/tally.ts'
import type { Case, Scene } from './cases/case.ts'
import { CASES } from './cases/index.ts'
import { makeOwnPlace } from './confine/own-place.ts'
import { MODEKEEPS_LOG } from './node/drivers.ts'
import { TestNode } from './node/node.ts'
import type { Pod } from './node/pod.ts'
import { Rendezvous } from './rendezvous.ts'
import { Clock } from './report/clock.ts'
import { type Result, table } from './report/table.ts'
import type { World } from './world.ts'

const RESTARTS = 3

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
  const node = await clock.wait('containerd, kubelet and both drivers', () => TestNode.start(world))
  try {
    return await runCases(world, node, clock)
  } finally {
    if (options.logs) keepLogs(world.place, options.logs)
  }
}

async function runCases({ options, runtime }: World, node: TestNode, clock: Clock): Promise<boolean> {
  const asked = options.small ? CASES.filter((one) => one.small) : CASES
  const chosen = asked.filter(({ name }) => name.includes(options.only))
  if (chosen.length === 0) throw new Error(`--only: no case has "${options.only}" in its name`)
  const results: Result[] = []
  const scene = { node, options, threeRestarts: () => Promise.reject(new Error('only for cases of "restarts"')) }

  const restarting = chosen.filter(({ when }) => when === 'restarts')
  const restarts = new Rendezvous<Pod>(restarting.length, async (pods) => {
    for (let n = 0; n < RESTARTS; n++) await clock.wait(`restart ${n + 1}`, () => node.restartKubelet('SIGTERM', pods))
  })
  await clock.wait('cases over kubelet restarts', () =>
    Promise.all(restarting.map(async (one) => results.push(await result(one, joining(scene, restarts))))),
  )
  await clock.wait('cases without', () =>
    Promise.all(
      chosen.filter(({ when }) => when === 'together').map(async (one) => results.push(await result(one, scene))),
    ),
  )
  for (const one of chosen.filter(({ when }) => when === 'alone')) {
    await clock.wait(one.name, async () => results.push(await result(one, scene)))
  }
  const inOrder = chosen.flatMap(({ name }) => results.filter((found) => found.name === name))
  // What a small run leaves to the whole one is not skipped.
  const skipped = asked.length - chosen.length
  console.log(`\n${table(inOrder, skipped)}`)
  const failed = inOrder.filter(({ failure }) => failure !== undefined).length
  const passed = inOrder.length - failed
  if (options.results) {
    const tally = { passed, failed, skipped: CASES.length - chosen.length }
    writeResults(options.results, 'test:kubelet', tally, { kubernetes: KUBERNETES_VERSION, ...versionsOf(runtime) })
  }
  closeWith({ passed, failed, skipped })
  return failed > 0
}

interface Joining extends Scene {
  leave(): void
}

function joining(scene: Scene, restarts: Rendezvous<Pod>): Joining {
  let asked = false
  return {
    ...scene,
    threeRestarts(...pods) {
      asked = true
      return restarts.ask(...pods)
    },
    leave() {
      if (!asked) restarts.leave()
    },
  }
}

async function result(one: Case, scene: Scene | Joining): Promise<Result> {
  const before = performance.now()
  const seconds = () => (performance.now() - before) / 1000
  try {
    const seen = await one.run(scene)
    return { name: one.name, seconds: seconds(), seen }
  } catch (error) {
    return {
      name: one.name,
      seconds: seconds(),
      failure: words(error),
    }
  } finally {
    if ('leave' in scene) scene.leave()
  }
}

/** An error's message, and where in the cases it was met. */
function words(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const [, where = ''] = /(\n +at .*\/cases\/[^\n]*)/.exec(error.stack ?? '') ?? []
  return `${error.message}${where}`
}
