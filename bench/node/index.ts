import { spawn } from 'node:child_process'
import * as fs from 'node:fs'
import { resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { inOrder } from '../statistics.ts'
import { mountVolume } from '../volume.ts'
import { NODE_CALLS, NODE_SIZES, type NodeCall, type NodeMeasurement, type NodeSize } from './calls.ts'

const TURNS_PER_ROUND = 10

/** A node with many mounts, in a mount namespace of its own. */
interface FilledNode {
  mounts: NodeSize
  /** Milliseconds of one call. */
  time(call: NodeCall): Promise<number>
  end(): void
}

/**
 * Times calls of the built binary on a node with few mounts and on one with many, taking turns. The mounts and their
 * records are made by modekeep itself, in process, each of a directory of its own.
 */
export async function measureNodes(
  workDirectory: string,
  rounds: number,
  say: (text: string) => void,
): Promise<NodeMeasurement[]> {
  const nodes: FilledNode[] = []
  try {
    for (const mounts of NODE_SIZES) {
      say(`a node with ${mounts.toLocaleString('en')} mounts`)
      nodes.push(await filledNode(`${workDirectory}/node-${mounts}`, mounts))
    }
    const all: NodeMeasurement[] = []
    for (const call of NODE_CALLS) {
      const measured = nodes.map(({ mounts }) => ({ call, mounts, milliseconds: [] as number[] }))
      for (let turn = 0; turn < rounds * TURNS_PER_ROUND; turn++) {
        for (const node of inOrder(nodes, turn)) {
          measured.find(({ mounts }) => mounts === node.mounts)?.milliseconds.push(await node.time(call))
        }
      }
      all.push(...measured)
    }
    return all
  } finally {
    for (const node of nodes) node.end()
  }
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
  const line = async () => {
    const { value, done } = await lines.next()
    if (done) throw new Error(`the node with ${mounts} mounts has ended`)
    return String(value)
  }
  await line()
  return {
    mounts,
    async time(call) {
      child.stdin.write(`${call}\n`)
      return Number(await line())
    },
    end: () => child.stdin.end(),
  }
}
