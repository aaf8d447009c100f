import { spawn } from 'node:child_process'
import * as fs from 'node:fs'
import * as os from 'node:os'
import { setTimeout } from 'node:timers/promises'
import { NRI_EVENT_NUMBERS } from '../src/frontends/nri/protocol.ts'
import { until } from '../test/frontends/csi/node.ts'
import { criRuntime, infoWith } from '../test/frontends/nri/cri.ts'
import { makeVolume, NriNode, replaced } from '../test/frontends/nri/node.ts'
import type { RuntimeEnd } from '../test/frontends/nri/runtime.ts'
import { aligned } from './columns.ts'
import { readProcessorMs } from './processor.ts'
import { median } from './statistics.ts'

export const ASKS = { 'modekeep/group': '2000' }
/** So many before anything is measured, and measured. */
const FIRST = 100
const REPEATS = 200
const AT_ONCE = 100
/** Processes that are busy meanwhile. */
const LOAD = 4
/** Between a sandbox and its first container. */
const SANDBOX_MS = 30

const MOST = { nothing: 0.2, one: 5, hundred: 2000 }

/** What `modekeep nri` takes for a container, by a fake runtime over its socket: a text for people. */
export async function containers(files: number): Promise<string> {
  const rows = [
    ...(await withVolume(1, 'by NRI', async (node, end, source) => [
      await nothing(node, end, source),
      await one(node, end, source, '1 file'),
      await whileBusy(LOAD, () => one(node, end, source, `1 file, at a load of ${LOAD}`)),
      ...(await hundred(node, end, source)),
      ...(await whileBusy(os.cpus().length, () => hundred(node, end, source, true))),
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

export const nextId = () => String(containersMade++).padStart(64, '0')

/** @returns the milliseconds until the runtime has its answer */
export async function timed(end: RuntimeEnd, request: ReturnType<NriNode['request']>): Promise<number> {
  const began = performance.now()
  const answer = await end.call('CreateContainer', 'ContainerRequest', request)
  const took = performance.now() - began
  const clones = replaced(answer)
  const { pod, container } = request
  if ((clones.length === 1) !== 'modekeep/group' in pod.annotations)
    throw new Error(`container ${container.id} was answered otherwise`)
  // A started container has mounts of its own: otherwise the node would have one mount more for each container so far.
  if (clones.length > 0)
    await end.call('StateChange', 'StateChangeEvent', { event: NRI_EVENT_NUMBERS.postStartContainer, pod, container })
  for (const { source } of clones) await until(() => !fs.readFileSync('/proc/self/mountinfo', 'utf8').includes(source))
  return took
}

async function nothing(node: NriNode, end: RuntimeEnd, source: string): Promise<string[]> {
  const many = REPEATS * 10
  for (let at = 0; at < many; at++) await create(node, end, {}, source)
  const before = readProcessorMs([node.plugin.pid])
  const times: number[] = []
  for (let at = 0; at < many; at++) times.push(await create(node, end, {}, source))
  const each = (readProcessorMs([node.plugin.pid]) - before) / many
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
  const before = readProcessorMs(pids)
  const times: number[] = []
  for (let at = 0; at < REPEATS; at++) times.push(await made(node, end, ASKS, source))
  const each = (readProcessorMs(pids) - before) / REPEATS
  const wall = median(times)
  return [`a container with one volume of ${what}`, each.toFixed(2), wall.toFixed(2), ...verdict(wall, MOST.one)]
}

/** Each with a clone. No volume hangs, so none may be refused. @param isBusy names what runs besides */
async function hundred(node: NriNode, end: RuntimeEnd, source: string, isBusy = false): Promise<string[][]> {
  let refused = 0
  const one = () =>
    create(node, end, ASKS, source).catch(() => {
      refused++
      return Number.POSITIVE_INFINITY
    })
  const times = await Promise.all(Array.from({ length: AT_ONCE }, one))
  const what = `${AT_ONCE} such containers at once${isBusy ? ', each processor busy' : ''}`
  const last = Math.max(...times)
  return [
    [`${what}, the median`, '', median(times).toFixed(0), '', ''],
    [`${what}, the last one`, '', last.toFixed(0), ...(isBusy ? ['', ''] : verdict(last, MOST.hundred))],
    [`${what}, refused`, '', String(refused), ...verdict(refused, 0)],
  ]
}

/**
 * Measures while so many processes use all the processor time that they get. This process, the runtime, is preferred to them,
 * because its own waits are not the plugin's.
 */
async function whileBusy<Rows>(load: number, measure: () => Promise<Rows>): Promise<Rows> {
  const busy = Array.from({ length: load }, () => spawn(process.execPath, ['-e', 'for (;;);'], { stdio: 'ignore' }))
  try {
    os.setPriority(os.constants.priority.PRIORITY_HIGHEST)
    return await measure()
  } finally {
    os.setPriority(os.constants.priority.PRIORITY_NORMAL)
    for (const process of busy) process.kill('SIGKILL')
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
