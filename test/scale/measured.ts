import { readdirSync, readFileSync } from 'node:fs'
import type { BinaryNode } from '../helpers/kubelet-call.ts'

const EVERY_MS = 10

export interface Measured {
  status: string
  message?: string
  /** The most handles seen open at once. */
  handles: number
  /** Peak of resident memory (VmHWM), in KiB. */
  memory: number
  samples: number
}

/**
 * A call of the built binary, watched from outside while it runs. A mount or an unmount is made by the child of the process
 * that was started.
 */
export async function measured(node: BinaryNode, ...args: string[]): Promise<Measured> {
  const { child, ended } = node.start(args)
  const seen = { handles: 0, memory: 0, samples: 0 }
  const timer = setInterval(() => {
    try {
      const [maker] = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8').split(' ')
      if (!maker) return
      seen.handles = Math.max(seen.handles, readdirSync(`/proc/${maker}/fd`).length)
      const peak = /VmHWM:\s*(\d+)/.exec(readFileSync(`/proc/${maker}/status`, 'utf8'))
      seen.memory = Math.max(seen.memory, Number(peak?.[1] ?? 0))
      seen.samples++
    } catch {
      // It has just ended.
    }
  }, EVERY_MS)
  const { text } = await ended.finally(() => clearInterval(timer))
  return { ...JSON.parse(text), ...seen }
}
