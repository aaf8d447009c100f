import type { Case, Scene } from './cases/case.ts'
import type { TestNode } from './node/node.ts'
import type { Pod } from './node/pod.ts'
import { Rendezvous } from './rendezvous.ts'
import type { Clock } from './report/clock.ts'
import type { Result } from './report/table.ts'

const RESTARTS = 3

/** Runs cases side by side where they may be, and returns how they ended, in their order. */
export async function runTogether<Node extends TestNode>(
  chosen: readonly Case<Node>[],
  node: Node,
  files: number,
  clock: Clock,
): Promise<Result[]> {
  const results: Result[] = []
  const scene = { node, files, threeRestarts: () => Promise.reject(new Error('only for cases of "restarts"')) }

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
  return chosen.flatMap(({ name }) => results.filter((found) => found.name === name))
}

interface Joining<Node extends TestNode> extends Scene<Node> {
  leave(): void
}

function joining<Node extends TestNode>(scene: Scene<Node>, restarts: Rendezvous<Pod>): Joining<Node> {
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

async function result<Node extends TestNode>(one: Case<Node>, scene: Scene<Node> | Joining<Node>): Promise<Result> {
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
