import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { IDLE_CHECK_INTERVAL_MS, releaseMemoryWhenIdle } from '../../driver/idle-memory.ts'
import { CsiNode } from '../frontends/csi/node.ts'
import { measureEachProcess } from '../helpers/memory.ts'
import { cannotMount } from './modekeep.ts'

describe('a long-running process', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())

  /** @returns how often memory was released after each check, if the process used so much processor time before it */
  function countReleases(usedMs: readonly number[]): number[] {
    let processorMs = 40
    let releases = 0
    releaseMemoryWhenIdle(
      () => processorMs,
      () => void releases++,
    )
    return usedMs.map((used) => {
      processorMs += used
      vi.advanceTimersByTime(IDLE_CHECK_INTERVAL_MS)
      return releases
    })
  }

  it('releases memory once when it is idle after its start', () => {
    expect(countReleases([100, 300, 1, 0, 19, 0])).toEqual([0, 0, 1, 1, 1, 1])
  })

  it('releases memory again when it is idle after half a second of processor time', () => {
    expect(countReleases([0, 200, 0, 200, 0, 200, 300, 0, 0])).toEqual([1, 1, 1, 1, 1, 1, 1, 2, 2])
  })
})

describe.skipIf(cannotMount !== '')(`the CSI server and its worker${cannotMount}`, () => {
  it('return at least 1 MiB each when they are idle', async () => {
    const node = new CsiNode()
    onTestFinished(() => node.end())
    await node.serve()
    await expect.poll(() => measureEachProcess(node.top), { timeout: 20_000 }).toHaveLength(2)
    const most = new Map<number, number>()
    const hasReleased = () =>
      measureEachProcess(node.top).map(({ pid, own }) => {
        most.set(pid, Math.max(own, most.get(pid) ?? 0))
        return own < (most.get(pid) ?? 0) - 1024
      })
    await expect.poll(hasReleased, { timeout: 60_000, interval: 250 }).toEqual([true, true])
  })
})
