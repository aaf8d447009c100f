import { expect, onTestFinished } from 'vitest'
import { cutNetwork, joinNetwork } from './namespace.ts'
import { listUninterruptible, type ServerNode } from './node.ts'

/** How a server ceases to respond. */
export const OUTAGES = ['its server stopped', 'the network cut'] as const
export type Outage = (typeof OUTAGES)[number]

/** Lets a server cease to respond, and lets it respond again. The kernel's own server has no process to stop. */
function startOutage(outage: Outage, pid: number | undefined): () => void {
  if (outage === 'the network cut' || pid === undefined) {
    cutNetwork()
    return joinNetwork
  }
  process.kill(-pid, 'SIGSTOP')
  return () => process.kill(-pid, 'SIGCONT')
}

/** An outage that a test begins and ends. It ends with the test at the latest. */
export function createOutageSwitch(outage: Outage, pid?: number): { stop: () => void; restart: () => void } {
  let end: (() => void) | undefined
  const restart = () => {
    end?.()
    end = undefined
  }
  onTestFinished(restart)
  const stop = () => {
    end = startOutage(outage, pid)
  }
  return { stop, restart }
}

/** No process waits in the kernel, and nothing of the pods is mounted or recorded. */
export async function expectNothingLeft(node: ServerNode, ...pods: string[]): Promise<void> {
  await waitUntil('a process waits in the kernel', () => listUninterruptible().length === 0)
  expect([pods.flatMap((pod) => node.layers(pod)), node.mountState()]).toEqual([[], []])
}

/** Polls until a condition holds. @throws {Error} after a minute */
export async function waitUntil(what: string, holds: () => boolean): Promise<void> {
  const end = performance.now() + 60_000
  while (!holds()) {
    if (performance.now() > end) throw new Error(`${what}: not within a minute`)
    await new Promise((done) => setTimeout(done, 5))
  }
}
