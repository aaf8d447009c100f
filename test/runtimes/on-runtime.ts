import * as fs from 'node:fs'
import { isAtLeast } from '../cluster/plane/version.ts'
import type { Case } from './cases/case.ts'
import { CASES } from './cases/index.ts'
import { type RuntimeNode, startNode } from './node/node.ts'
import type { RuntimeWorld } from './world.ts'

export interface Result {
  name: string
  seconds: number
  seen?: string
  /** Why it failed. */
  failure?: string
}

/** How the cases ended on one runtime. */
export interface Outcome {
  containerd: string
  runc: string
  results: Result[]
  /** Cases that this runtime cannot have, with the reason. */
  unable: string[]
  /** Cases that --only does not name. */
  unasked: number
}

/** Runs the cases in this process's namespaces. Returns whether one failed. */
export async function run(world: RuntimeWorld): Promise<boolean> {
  const { containerd, runc } = world.suite
  const isChosen = ({ name }: Case) => name.includes(world.only)
  const [before, after] = [CASES.without.filter(isChosen), CASES.with.filter(isChosen)]
  if (before.length + after.length === 0) throw new Error(`--only: no case has "${world.only}" in its name`)
  const node = await startNode(world)
  const results: Result[] = []
  const unable: string[] = []
  const tryAll = async (cases: readonly Case[]) => {
    for (const one of cases) {
      if (one.needs !== undefined && !isAtLeast(containerd, one.needs))
        unable.push(`${one.name}: needs containerd ${one.needs}`)
      else results.push(await result(one, node))
    }
  }
  await tryAll(before)
  if (after.length > 0) {
    node.configure()
    await node.startPlugin()
    await tryAll(after)
  }
  const unasked = CASES.without.length + CASES.with.length - before.length - after.length
  const outcome: Outcome = { containerd, runc, results, unable, unasked }
  fs.writeFileSync(world.results, JSON.stringify(outcome))
  return results.some(({ failure }) => failure !== undefined)
}

async function result({ name, run: tried }: Case, node: RuntimeNode): Promise<Result> {
  const before = performance.now()
  const seconds = () => Math.round((performance.now() - before) / 100) / 10
  try {
    const seen = await tried(node)
    return { name, seconds: seconds(), seen }
  } catch (error) {
    const failure = error instanceof Error ? (error.stack ?? error.message) : String(error)
    await node.tidy()
    node.configure()
    return { name, seconds: seconds(), failure }
  }
}
