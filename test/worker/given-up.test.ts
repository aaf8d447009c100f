import { expect, it, vi } from 'vitest'
import { givenUpWalkRecords } from '../../src/state/process-records.ts'
import { computeWalkSilenceLimitMs, recordGivenUpWalk } from '../../src/worker/given-up.ts'
import { memoryStage } from '../helpers/stage.ts'

const VOLUME = 'ef53.1-2-3'
const GIVEN_UP = { pid: 12, seconds: 60, isLeft: false }

it('after a walk was given up, the next walks of the volume have a short time limit for two minutes, then the full one', () => {
  vi.useFakeTimers()
  try {
    const session = memoryStage().session()
    expect(computeWalkSilenceLimitMs(session, VOLUME)).toBeUndefined()
    recordGivenUpWalk(session, VOLUME, GIVEN_UP)
    expect(computeWalkSilenceLimitMs(session, VOLUME)).toBe(750)
    vi.advanceTimersByTime(119_000)
    // A given-up walk that had only the short time does not prolong it.
    recordGivenUpWalk(session, VOLUME, { ...GIVEN_UP, seconds: 1 })
    expect(computeWalkSilenceLimitMs(session, VOLUME)).toBe(750)
    vi.advanceTimersByTime(2000)
    expect(computeWalkSilenceLimitMs(session, VOLUME)).toBeUndefined()
    // The clock of the node was set back.
    vi.setSystemTime(0)
    expect(computeWalkSilenceLimitMs(session, VOLUME)).toBeUndefined()
    givenUpWalkRecords.remove(session, VOLUME)
    expect(computeWalkSilenceLimitMs(session, VOLUME)).toBeUndefined()
  } finally {
    vi.useRealTimers()
  }
})
