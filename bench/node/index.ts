import { spawn } from 'node:child_process'
import * as fs from 'node:fs'
import { resolve } from 'node:path'
import { createInterface } from 'node:readline'
import type { Options } from '../options.ts'
import type { Results } from '../results.ts'
import { inOrder } from '../statistics.ts'
import type { Counts } from '../syscalls.ts'
import { mountVolume } from '../volume.ts'
import { NODE_CALLS, NODE_SIZES, type NodeMeasurement, type NodeSize } from './calls.ts'

const TURNS_PER_ROUND = 6

/** A node with many mounts, in a mount namespace of its own. */
interface FilledNode {
  mounts: NodeSize
  /** What filled.ts answers. */
  ask<Answer>(line: string): Promise<Answer>
  end(): void
}

/**
 * Measures calls of the built binary on a node with few mounts and on one with many, taking turns. The mounts and their
 * records are made by modekeep itself, in process, each of a directory of its own.
 */
export async function measureNodes(
  workDirectory: string,
  results: Results,
  { parts, rounds }: Options,
  say: (text: string) => void,
): Promise<void> {
  const nodes: FilledNode[] = []
  try {
    for (const mounts of NODE_SIZES) {
      say(`a node with mounts: ${mounts.toLocaleString('en')}`)
      nodes.push(await filledNode(`${workDirectory}/node-${mounts}`, mounts))
    }
    const [empty, full] = nodes
    if (parts.includes('system-calls') && empty && full) {
      say('system calls of a repeated mount')
      const few = await empty.ask<Counts>('10')
      const manyFiles = await empty.ask<Counts>(`${results.most}`)
      const manyMounts = await full.ask<Counts>('10')
      results.systemCalls = { few, manyFiles, manyMounts }
    }
    if (parts.includes('mounts')) results.node = await timeCalls(nodes, rounds)
  } finally {
    for (const node of nodes) node.end()
  }
}

async function timeCalls(nodes: readonly FilledNode[], rounds: number): Promise<NodeMeasurement[]> {
  const all: NodeMeasurement[] = []
  for (const call of NODE_CALLS) {
    const measured = nodes.map(({ mounts }) => ({ call, mounts, milliseconds: [] as number[] }))
    for (let turn = 0; turn < rounds * TURNS_PER_ROUND; turn++) {
      for (const node of inOrder(nodes, turn)) {
        measured.find(({ mounts }) => mounts === node.mounts)?.milliseconds.push(await node.ask<number>(call))
      }
    }
    all.push(...measured)
  }
  return all
}

async function filledNode(top: string, mounts: NodeSize): Promise<FilledNode> {
  fs.mkdirSync(top)
  mountVolume('tmpfs', `${top}/volumes`, 0)
  const script = resolve(import.meta.dirname, 'filled.ts')
  const node = [process.execPath, script, top, `${top}/volumes`, `${mounts}`]
  const child = spawn('unshare', ['--mount', '--propagation', 'private', ...node], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const answer = async () => {
    const { value, done } = await lines.next()
    if (done) throw new Error(`the node with ${mounts} mounts has ended`)
    return JSON.parse(value)
  }
  await answer()
  return {
    mounts,
    ask(line) {
      child.stdin.write(`${line}\n`)
      return answer()
    },
    end: () => child.stdin.end(),
  }
}
