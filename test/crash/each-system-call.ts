import * as fs from 'node:fs'
import { killAt, trace } from '../helpers/inject.ts'
import { BinaryNode } from '../helpers/kubelet-call.ts'
import type { KillPoint, TracedCall } from '../helpers/strace-text.ts'
import { FULL, mountStorage, wipe } from './volume.ts'

/** Kept for good, or made anew by the next call that needs it. */
const LASTING = new Set(['boot', 'boot.new', 'claims.lock', 'mounts', 'ownership', 'sweep.lock'])

/** A node with a volume of one file, where a call can be killed at every system call it makes for itself. */
export class SmallNode {
  readonly node = new BinaryNode()
  readonly source = `${this.node.volumes}/data`
  readonly other = `${this.node.volumes}/other`

  constructor() {
    mountStorage(this.node, 'tmpfs')
  }

  fresh(): void {
    wipe(this.node)
    for (const source of [this.source, this.other]) {
      fs.mkdirSync(source)
      fs.writeFileSync(`${source}/name`, source)
    }
  }

  mountCall(options: Record<string, string> = {}): string[] {
    return ['mount', this.node.podDirectory('a'), JSON.stringify({ source: this.source, ...options })]
  }

  unmountCall(): string[] {
    return ['unmount', this.node.podDirectory('a')]
  }

  /** The source that the directory shows; '' for none, and nothing by half. */
  shown(): string {
    const directory = this.node.podDirectory('a')
    // An empty file is what a subPath of a file is mounted on.
    if (!fs.statSync(directory).isDirectory()) return fs.readFileSync(directory, 'utf8')
    const names = fs.readdirSync(directory)
    if (names.length === 0) return ''
    return names.join() === 'name' ? fs.readFileSync(`${directory}/name`, 'utf8') : `also ${names.join()}`
  }

  /** Everything that a call could have left: processes, mounts, records, locks, directories. */
  leftovers(): string[] {
    const { node } = this
    return [
      ...processesOf(node.top).map((line) => `process ${line}`),
      ...node.layers('a').map(({ root }) => `mount of ${root}`),
      ...fs.readdirSync(node.state).filter((name) => !LASTING.has(name)),
      ...node.mountState().map((name) => `mounts/${name}`),
      ...namesIn(`${node.state}/ownership`).map((name) => `ownership/${name}`),
      ...fs.readdirSync(node.podDirectory('a')),
      ...fs.readdirSync(`${node.top}/pods`).filter((name) => name !== 'a'),
      ...fs.readdirSync(node.volumes).filter((name) => name !== 'data' && name !== 'other'),
      ...fs.readdirSync(node.top).filter((name) => !['config.json', 'log', 'pods', 'state', 'volumes'].includes(name)),
    ]
  }
}

function namesIn(directory: string): string[] {
  return fs.existsSync(directory) ? fs.readdirSync(directory) : []
}

/** Command lines of processes that name a directory of the node. */
export function processesOf(top: string): string[] {
  return fs
    .readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(commandLine)
    .filter((line) => line.includes(top))
}

function commandLine(pid: string): string {
  try {
    return fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')
  } catch {
    return ''
  }
}

/** Calls of a process from its first look into the state directory on: before it, only the runtime has started. */
function itsOwn(calls: readonly TracedCall[], state: string): KillPoint[] {
  const first = calls.findIndex(({ name, text }) => name === 'openat' && text.includes(`"${state}/`))
  return [...new Map(calls.slice(first).map((call) => [`${call.name} ${call.when}`, call])).values()]
}

/** Which of the points are taken without MODEKEEP_TEST_SIZE=full: others each day, and the run says which. */
function portion(points: readonly KillPoint[], every: number): { from: number; step: number } {
  if (FULL || every >= points.length) return { from: 0, step: FULL ? 1 : every }
  const given = process.env.MODEKEEP_TEST_OFFSET
  return { from: Number(given ?? Math.floor(Date.now() / 86_400_000)) % every, step: every }
}

/**
 * Kills a call at its system calls in turn, those of its threads and of its runtime included. These vary from run to run:
 * one that ends by itself counts as survived, and must end right as well.
 * @param every the how-many-th point is taken, all of them with MODEKEEP_TEST_SIZE=full
 */
export async function killAtSystemCalls(
  title: string,
  on: SmallNode,
  args: readonly string[],
  every: number,
  before: () => Promise<void>,
  check: (index: number) => Promise<void>,
): Promise<number> {
  const prepare = async () => {
    on.fresh()
    await before()
  }
  await prepare()
  const points = itsOwn(await trace(on.node, args), on.node.state)
  const { from, step } = portion(points, every)
  let [tried, died] = [0, 0]
  for (let index = from; index < points.length; index += step) {
    const point = points[index]
    if (point === undefined) break
    await prepare()
    tried++
    if (await killAt(on.node, args, point)) died++
    try {
      await check(tried)
    } catch (error) {
      throw new Error(`killed at ${point.name} ${point.when}, in place of: ${point.text}`, { cause: error })
    }
  }
  const which = step > 1 ? `, every ${step}th of ${points.length} from ${from} (MODEKEEP_TEST_OFFSET)` : ''
  console.log(`${title}: ${tried} system calls tried, ${died} deaths, ${tried - died} ended by themselves${which}`)
  return died
}
