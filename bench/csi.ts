import { call } from '../test/frontends/csi/kubelet.ts'
import { CsiNode } from '../test/frontends/csi/node.ts'
import { aligned } from './columns.ts'
import { readProcessorMs } from './processor.ts'
import { median } from './statistics.ts'

const REPEATS = 1000
const FIRST = 200
const GROUP = '2000'
const MOST = 5

/** What a repeat that finds all well costs `modekeep csi` and its workers, beside a probe: a text for people. */
export async function repeatedCsiCalls(): Promise<string> {
  const node = new CsiNode()
  try {
    await node.serve()
    const source = node.volume('repeated', 10)
    const rows = [await measured(node, 'a probe', () => call({ socket: node.socket }, 'Identity/Probe', {}))]
    for (const [at, ownership] of (['none', 'walk', 'idmap'] as const).entries()) {
      const wish = { group: GROUP, attributes: { ownership } }
      rows.push(await measured(node, `a repeat, ownership ${ownership}`, () => node.publish(at, source, wish)))
      await node.unpublish(at)
    }
    return `${aligned([['milliseconds a call', 'processor', 'wall', 'must', ''], ...rows]).join('\n')}\n`
  } finally {
    await node.end()
  }
}

/** @param make a call; so many are made before it is measured */
async function measured(node: CsiNode, what: string, make: () => ReturnType<typeof call>): Promise<string[]> {
  const times: number[] = []
  const once = async () => {
    const began = performance.now()
    const { code, message } = await make()
    times.push(performance.now() - began)
    if (code !== 'OK') throw new Error(`${what}: ${code} ${message}`)
  }
  for (let time = 0; time < FIRST; time++) await once()
  times.length = 0
  const before = readServerProcessorMs(node)
  for (let time = 0; time < REPEATS; time++) await once()
  const each = (readServerProcessorMs(node) - before) / REPEATS
  const verdict = each <= MOST ? 'met' : 'not met'
  return [what, each.toFixed(2), median(times).toFixed(2), `at most ${MOST}`, verdict]
}

/** Of the server and its workers, ms. */
export function readServerProcessorMs(node: CsiNode): number {
  return readProcessorMs([node.server.pid, ...node.workers()])
}
