import * as fs from 'node:fs'
import { call } from '../test/frontends/csi/kubelet.ts'
import { CsiNode } from '../test/frontends/csi/node.ts'
import { aligned } from './columns.ts'
import { median } from './statistics.ts'

const REPEATS = 1000
const FIRST = 200
const GROUP = '2000'
/** In milliseconds: of proc_pid_stat(5), as USER_HZ is 100. */
const TICK = 10
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
  const before = processor(node)
  for (let time = 0; time < REPEATS; time++) await once()
  const each = (processor(node) - before) / REPEATS
  const verdict = each <= MOST ? 'met' : 'not met'
  return [what, each.toFixed(2), median(times).toFixed(2), `at most ${MOST}`, verdict]
}

/** Of the server, its workers and what they have waited for. */
function processor(node: CsiNode): number {
  const pids = [node.server.pid, ...node.workers()]
  const ticks = pids.map((pid) => {
    const fields = fs.readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ') ?? []
    return fields.slice(11, 15).reduce((all, field) => all + Number(field), 0)
  })
  return ticks.reduce((all, some) => all + some, 0) * TICK
}
