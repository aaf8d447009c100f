import { spawn } from 'node:child_process'
import * as fs from 'node:fs'
import * as os from 'node:os'
import { setTimeout } from 'node:timers/promises'
import { NRI_EVENT_NUMBERS } from '../src/frontends/nri/protocol.ts'
import { criRuntime, infoWith } from '../test/frontends/nri/cri.ts'
import { makeVolume, NriNode, replaced } from '../test/frontends/nri/node.ts'
import type { RuntimeEnd } from '../test/frontends/nri/runtime.ts'
import { aligned } from './columns.ts'
import { median } from './statistics.ts'

const ASKS = { 'modekeep/group': '2000' }
const NANOSECONDS = 1e6
/** So many before anything is measured, and measured. */
const FIRST = 100
const REPEATS = 200
const AT_ONCE = 100
/** Between a sandbox and its first container. */
const SANDBOX_MS = 30

const MOST = { nothing: 0.2, one: 5, hundred: 2000 }

/** What `modekeep nri` takes for a container, by a fake runtime over its socket: a text for people. */
export async function containers(files: number): Promise<string> {
  const rows = [
    ...(await withVolume(1, 'by NRI', async (node, end, source) => [
      await nothing(node, end, source),
      await one(node, end, source, '1 file'),
      ...(await hundred(node, end, source)),
      ...(await hundred(node, end, source, true)),
    ])),
    ...(await withVolume(files, 'by NRI', async (node, end, source) => [
      await one(node, end, source, `${files} files`),
    ])),
    ...(await withVolume(1, 'by CRI', async (node, end, source) => [
      await one(node, end, source, '1 file, its groups by CRI', inSandboxOfItsOwn),
      ...(await hundred(node, end, source)),
    ])),
  ]
  return `${aligned([['milliseconds', 'processor', 'wall', 'must', ''], ...rows]).join('\n')}\n`
}

/** @param groups how the runtime tells those of the processes: with the container, or where it is asked for the pod's */
async function withVolume(
  files: number,
  groups: 'by NRI' | 'by CRI',
  measure: (node: NriNode, end: RuntimeEnd, source: string) => Promise<string[][]>,
): Promise<string[][]> {
  const node = new NriNode()
  const socket = `${node.top}/cri.sock`
  const cri = groups === 'by CRI' ? await criRuntime(socket, /^sandbox-/, infoWith([2000])) : undefined
  try {
    const source = node.publish(1, makeVolume(node, files, 64 + Math.ceil(files / 1000)))
    return await measure(node, await node.serve([], [], cri ? ['--cri-socket', socket] : []), source)
  } finally {
    await cri?.close(0)
    await node.end()
  }
}

let containersMade = 0

type Create = (node: NriNode, end: RuntimeEnd, annotations: Record<string, string>, source: string) => Promise<number>

/** @returns the wall time, ms */
const create: Create = (node, end, annotations, source) => timed(end, node.request(1, annotations, source, nextId()))

/** As runtimes do, which tell of each sandbox some time before they are asked to create a container in it. */
const inSandboxOfItsOwn: Create = async (node, end, annotations, source) => {
  const request = node.request(1, annotations, source, nextId())
  const id = `sandbox-${request.container.id}`
  request.pod.id = id
  request.container.podSandboxId = id
  await end.call('StateChange', 'StateChangeEvent', { event: NRI_EVENT_NUMBERS.runPodSandbox, pod: request.pod })
  await setTimeout(SANDBOX_MS)
  return timed(end, request)
}

const nextId = () => String(containersMade++).padStart(64, '0')

async function timed(end: RuntimeEnd, request: ReturnType<NriNode['request']>): Promise<number> {
  const began = performance.now()
  const answer = await end.call('CreateContainer', 'ContainerRequest', request)
  const took = performance.now() - began
  const isMapped = replaced(answer).length === 1
  const { pod, container } = request
  if (isMapped !== 'modekeep/group' in pod.annotations)
    throw new Error(`container ${container.id} was answered otherwise`)
  return took
}

async function nothing(node: NriNode, end: RuntimeEnd, source: string): Promise<string[]> {
  const many = REPEATS * 10
  for (let at = 0; at < many; at++) await create(node, end, {}, source)
  const before = processor([node.plugin.pid ?? 0])
  const times: number[] = []
  for (let at = 0; at < many; at++) times.push(await create(node, end, {}, source))
  const each = (processor([node.plugin.pid ?? 0]) - before) / many
  return [
    'a container that asks for nothing',
    each.toFixed(3),
    median(times).toFixed(3),
    ...verdict(each, MOST.nothing),
  ]
}

async function one(node: NriNode, end: RuntimeEnd, source: string, what: string, made = create): Promise<string[]> {
  for (let at = 0; at < FIRST; at++) await made(node, end, ASKS, source)
  const pids = processes(node)
  const before = processor(pids)
  const times: number[] = []
  for (let at = 0; at < REPEATS; at++) times.push(await made(node, end, ASKS, source))
  const each = (processor(pids) - before) / REPEATS
  const wall = median(times)
  return [`a container with one volume of ${what}`, each.toFixed(2), wall.toFixed(2), ...verdict(wall, MOST.one)]
}

/** Each with a clone. No volume hangs, so none may be refused. @param isBusy while a process keeps each processor busy */
async function hundred(node: NriNode, end: RuntimeEnd, source: string, isBusy = false): Promise<string[][]> {
  const burners = isBusy ? os.cpus().map(() => spawn(process.execPath, ['-e', 'for (;;);'], { stdio: 'ignore' })) : []
  try {
    let refused = 0
    const one = async () => {
      const began = performance.now()
      await create(node, end, ASKS, source).catch(() => refused++)
      return performance.now() - began
    }
    const times = await Promise.all(Array.from({ length: AT_ONCE }, one))
    const what = `${AT_ONCE} such containers at once${isBusy ? ', each processor busy' : ''}`
    const last = Math.max(...times)
    return [
      [`${what}, the median`, '', median(times).toFixed(0), '', ''],
      [`${what}, the last one`, '', last.toFixed(0), ...(isBusy ? ['', ''] : verdict(last, MOST.hundred))],
      [`${what}, refused`, '', String(refused), ...verdict(refused, 0)],
    ]
  } finally {
    for (const burner of burners) burner.kill('SIGKILL')
  }
}

function verdict(is: number, must: number): string[] {
  return [`at most ${must}`, is <= must ? 'met' : 'not met']
}

/** The plugin's and its workers'. */
function processes(node: NriNode): number[] {
  const own = fs.readdirSync('/proc').filter((name) => /^\d+$/.test(name) && environment(name).includes(node.top))
  return own.map(Number)
}

function environment(pid: string): string {
  try {
    return fs.readFileSync(`/proc/${pid}/environ`, 'utf8')
  } catch {
    return ''
  }
}

/** Of all their threads, ms: the first number of proc(5)'s schedstat is nanoseconds on a processor. One that has ended has none. */
function processor(pids: readonly number[]): number {
  const spent = pids.flatMap((pid) => {
    try {
      const threads = fs.readdirSync(`/proc/${pid}/task`).map((task) => `/proc/${pid}/task/${task}`)
      return threads.map((thread) => Number(fs.readFileSync(`${thread}/schedstat`, 'utf8').split(' ')[0]))
    } catch {
      return []
    }
  })
  return spent.reduce((all, some) => all + some, 0) / NANOSECONDS
}
