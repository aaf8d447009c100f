import { execFileSync, spawn } from 'node:child_process'
import * as fs from 'node:fs'
import { resolve } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { provideKubernetesProgram } from '../scripts/fetch/kubernetes.ts'
import { call } from '../test/frontends/csi/kubelet.ts'
import { CsiNode, until } from '../test/frontends/csi/node.ts'
import { aligned } from './columns.ts'
import { readServerProcessorMs } from './csi.ts'
import { median } from './statistics.ts'

const GROUP = '2000'
const FILES = 1000
/** Volumes of a batch; so many batches are not measured, and measured. */
const BATCH = 20
const UNMEASURED_BATCHES = 3
const MEASURED_BATCHES = 5
const AT_ONCE = 50
const ROUNDS = 5
/** What kubelet asks a driver that registers, before any publication. */
const REGISTRATION_METHODS = ['Identity/GetPluginInfo', 'Node/NodeGetInfo', 'Node/NodeGetCapabilities']
/** After the registration. */
const AFTER_START_MS = 500

type Ownership = 'none' | 'idmap' | 'walk'
/** Milliseconds of processor time for a publication. */
const MOST_PROCESSOR: Readonly<Record<Ownership, number>> = { none: 4, idmap: 8, walk: 35 }
const MOST_FIRST = 2
const LEAST_AT_ONCE: readonly (readonly [Ownership, number])[] = [
  ['none', 0.6],
  ['idmap', 0.25],
]

/** As bench/peers/csi.go reads it. */
interface PeerVolume {
  readonly ID: string
  readonly Target: string
  readonly Group: string
  readonly Context: Readonly<Record<string, string>>
}

/** What kubelet's calls for new pods cost `modekeep csi`: a text for people. */
export async function csiPublications(say: (text: string) => void): Promise<string> {
  const main = fs.readFileSync(resolve(import.meta.dirname, 'peers/csi.go'))
  const peer = provideKubernetesProgram({ name: 'csi', main }, say)
  const rows = [
    ['publications', 'measured', 'must', ''],
    ...(await measureProcessor(peer)),
    ...(await measureFirst(peer)),
    ...(await measureAtOnce(peer)),
  ]
  return `${aligned(rows).join('\n')}\n`
}

async function measureProcessor(peer: string): Promise<string[][]> {
  const rows: string[][] = []
  for (const ownership of ['none', 'idmap', 'walk'] as const) {
    await withServer(async (node) => {
      const files = ownership === 'walk' ? FILES : 10
      let pod = 0
      const costs: number[] = []
      for (let batch = 0; batch < UNMEASURED_BATCHES + MEASURED_BATCHES; batch++) {
        const volumes = Array.from({ length: BATCH }, () =>
          createVolume(node, pod++, node.volume(`of-${pod}`, files), ownership),
        )
        const before = readServerProcessorMs(node)
        callPeer(peer, 'publish', node.socket, volumes, 1)
        const after = readServerProcessorMs(node)
        if (batch >= UNMEASURED_BATCHES) costs.push((after - before) / BATCH)
        callPeer(peer, 'unpublish', node.socket, volumes, 1)
      }
      const what = ownership === 'walk' ? `walk of ${FILES}` : ownership
      rows.push(verdict(`processor time, warm, ${what}`, median(costs), 'ms', MOST_PROCESSOR[ownership]))
    })
  }
  return rows
}

async function measureFirst(peer: string): Promise<string[][]> {
  const [first, atOnce]: [number[], number[]] = [[], []]
  for (let round = 0; round < ROUNDS; round++) {
    for (const [delayMs, ratios] of [
      [AFTER_START_MS, first],
      [0, atOnce],
    ] as const) {
      await withServer(async (node) => {
        const source = node.volume('first', 10)
        for (const method of REGISTRATION_METHODS) await call({ socket: node.socket }, method, {})
        await setTimeout(delayMs)
        const publish = (pod: number) =>
          median(callPeer(peer, 'publish', node.socket, [createVolume(node, pod, source, 'none')], 1).each)
        const cold = publish(0)
        const warm = Array.from({ length: BATCH }, (_, at) => publish(1 + at))
        ratios.push(cold / median(warm))
      })
    }
  }
  return [
    verdict(`first, ${AFTER_START_MS} ms after the registration / warm`, median(first), '', MOST_FIRST),
    ['first, right after the registration / warm', median(atOnce).toFixed(2), '', ''],
  ]
}

async function measureAtOnce(peer: string): Promise<string[][]> {
  const rates: Record<string, number[]> = {}
  for (let round = 0; round < ROUNDS; round++) {
    for (const ownership of ['none', 'idmap', 'bind'] as const) {
      await withServer(async (node) => {
        const source = node.volume('shared', 10)
        const binds = ownership === 'bind'
        const socket = binds ? `${node.top}/bind.sock` : node.socket
        const server = binds ? spawn(peer, ['serve', socket], { stdio: 'inherit' }) : undefined
        if (binds) await until(() => fs.existsSync(socket))
        const create = (pod: number) => createVolume(node, pod, source, binds ? 'none' : ownership)
        // Kubelet has called before: the code of both servers is loaded.
        callPeer(
          peer,
          'publish',
          socket,
          Array.from({ length: BATCH }, (_, at) => create(at)),
          1,
        )
        const volumes = Array.from({ length: AT_ONCE }, (_, at) => create(BATCH + at))
        const { all } = callPeer(peer, 'publish', socket, volumes, AT_ONCE)
        rates[ownership] = [...(rates[ownership] ?? []), AT_ONCE / (all / 1000)]
        server?.kill('SIGKILL')
      })
    }
  }
  const rateOf = (name: string) => median(rates[name] ?? [])
  return LEAST_AT_ONCE.map(([name, least]) => {
    const ratio = rateOf(name) / rateOf('bind')
    const pods = `${rateOf(name).toFixed(0)} of ${rateOf('bind').toFixed(0)} pods/s`
    const met = ratio >= least ? 'met' : 'not met'
    return [
      `${AT_ONCE} at once, ${name}, / a server that binds`,
      `${ratio.toFixed(2)} (${pods})`,
      `at least ${least}`,
      met,
    ]
  })
}

async function withServer(measure: (node: CsiNode) => Promise<void>): Promise<void> {
  const node = new CsiNode()
  try {
    await node.serve()
    await measure(node)
  } finally {
    await node.end()
  }
}

function createVolume(node: CsiNode, pod: number, source: string, ownership: Ownership): PeerVolume {
  const Context = node.volumeContext(pod, source, { ownership })
  return { ID: `csi-${pod}`, Target: node.target(pod), Group: ownership === 'none' ? '' : GROUP, Context }
}

/** @returns the milliseconds of all calls and of each */
function callPeer(peer: string, verb: string, socket: string, volumes: readonly PeerVolume[], atOnce: number) {
  const output = execFileSync(peer, [verb, socket, String(atOnce)], { input: JSON.stringify(volumes) })
  const { all, each } = JSON.parse(output.toString()) as { all: number; each: number[] }
  return { all: all / 1e6, each: each.map((took) => took / 1e6) }
}

function verdict(what: string, measured: number, unit: string, most: number): string[] {
  return [what, `${measured.toFixed(2)} ${unit}`.trim(), `at most ${most}`, measured <= most ? 'met' : 'not met']
}
