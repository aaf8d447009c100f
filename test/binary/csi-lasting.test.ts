import { spawn } from 'node:child_process'
import * as fs from 'node:fs'
import { beforeEach, describe, expect, it } from 'vitest'
import { call } from '../frontends/csi/kubelet.ts'
import { CsiNode, until } from '../frontends/csi/node.ts'
import { cannotInject } from '../helpers/inject.ts'
import { addSkipReason } from '../helpers/needs.ts'
import { PATIENCE, sized } from '../helpers/size.ts'

const CALLS_PER_ROUND = 7
/** In which the program gets as large as it becomes. */
const FIRST = sized(30, 300, 700)
const ROUNDS = sized(60, 600, 1500)
/** Rounds from which the most is taken: the heap goes up and down. */
const LOOKS = sized(10, 100, 200)
/**
 * In KB. The heap itself goes up and down by more than half of it; what a long run leaves of 8 KB a call is more than twice
 * as much. In a short run it still grows to its size: that sees descriptors and threads.
 */
const MOST_GROWTH = sized(128, 32) * 1024

let node: CsiNode
beforeEach(() => {
  node = new CsiNode()
  return () => node.end()
})

describe.skipIf(cannotInject !== '')(addSkipReason('resources of the CSI server', cannotInject), () => {
  it.each(['none', 'walk', 'idmap'])(
    'a long-running CSI server starts no process for repeated calls on a healthy volume: %s',
    async (ownership) => {
      await node.serve()
      const source = node.volume('data', 3)
      const publish = (pod: number) => node.publish(pod, source, { group: '2000', attributes: { ownership } })
      expect(await publish(1)).toMatchObject({ code: 'OK' })
      using trace = traced(processes())
      await until(() => trace.isWatching())
      for (let times = 0; times < 20; times++) expect(await publish(1)).toMatchObject({ code: 'OK' })
      expect(trace.started()).toEqual([])
      // Who has ended is replaced, which the trace does see.
      for (const worker of node.workers()) process.kill(worker, 'SIGKILL')
      await until(() => node.workers().length === 0)
      // A call that comes before the server has the state gets ABORTED.
      while ((await publish(1)).code === 'ABORTED') expect(trace.started()).toEqual([])
      expect(trace.started()).toEqual([expect.stringContaining('csi-worker')])
    },
  )

  it(
    `a long-running CSI server uses no more memory, descriptors or threads after ${ROUNDS * CALLS_PER_ROUND} calls`,
    async () => {
      await node.serve()
      const source = node.volume('data', 3)
      for (let at = 0; at < FIRST; at++) await round(at, source)
      const before = await most(source)
      for (let at = 0; at < ROUNDS; at++) await round(at, source)
      const after = await most(source)
      expect({ ...after, memory: 0 }).toEqual({ ...before, memory: 0 })
      expect(after.memory - before.memory).toBeLessThan(MOST_GROWTH)
    },
    PATIENCE,
  )
})

/** What kubelet asks of a node: a repeat, its looks, a pod with a fault, and one that comes and goes. */
async function round(at: number, source: string): Promise<void> {
  const pod = 2 + (at % 8)
  const wish = { group: '2000', attributes: { ownership: 'walk' } }
  const { socket } = node
  const answers = [
    await node.publish(1, source, wish),
    await node.stats(1),
    await call({ socket }, 'Identity/Probe', {}),
    await call({ socket }, 'Node/NodeGetCapabilities', {}),
    await node.publish(pod, source, { attributes: { ownership: `of round ${at}` } }),
    await node.publish(pod, source, wish),
    await node.unpublish(pod),
  ]
  expect(answers.map(({ code }) => code)).toEqual(['OK', 'OK', 'OK', 'OK', 'INVALID_ARGUMENT', 'OK', 'OK'])
}

interface Used {
  /** In KB. */
  memory: number
  threads: number
  descriptors: number
}

/** The most that the server and its worker use in some rounds. */
async function most(source: string): Promise<Used> {
  const found: Used = { memory: 0, threads: 0, descriptors: 0 }
  for (let at = 0; at < LOOKS; at++) {
    await round(at, source)
    for (const key of ['memory', 'threads', 'descriptors'] as const) found[key] = Math.max(found[key], used()[key])
  }
  return found
}

function used(): Used {
  const all = processes().map((pid) => {
    const status = fs.readFileSync(`/proc/${pid}/status`, 'utf8')
    const of = (key: string) => Number(new RegExp(`^${key}:\\s+(\\d+)`, 'm').exec(status)?.[1])
    return { memory: of('RssAnon'), threads: of('Threads'), descriptors: fs.readdirSync(`/proc/${pid}/fd`).length }
  })
  const total = (key: keyof Used) => all.reduce((sum, one) => sum + one[key], 0)
  return { memory: total('memory'), threads: total('threads'), descriptors: total('descriptors') }
}

const processes = () => [node.server.pid as number, ...node.workers()]

/** Watches processes, and theirs, for programs that they start. */
function traced(pids: readonly number[]) {
  const file = `${node.top}/trace`
  const args = ['-f', '-e', 'trace=execve', '-e', 'signal=none', '-o', file, ...pids.flatMap((pid) => ['-p', `${pid}`])]
  const tracer = spawn('strace', args, { stdio: ['ignore', 'ignore', 'pipe'] })
  let said = ''
  tracer.stderr.on('data', (data) => {
    said += data
  })
  return {
    isWatching: () => pids.every((pid) => said.includes(`Process ${pid} attached`)),
    started: () => fs.readFileSync(file, 'utf8').match(/execve\(.*/g) ?? [],
    [Symbol.dispose]: () => void tracer.kill('SIGINT'),
  }
}
