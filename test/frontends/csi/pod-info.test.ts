import { beforeEach, describe, expect, it } from 'vitest'
import {
  POD_INFO_CHECK_INTERVAL_MS,
  type PodInfoOnMountAnswer,
  PodInfoOnMountGuard,
  parsePodInfoOnMount,
} from '../../../src/frontends/csi/pod-info.ts'

describe('the guard of podInfoOnMount', () => {
  let now: number
  let isStated: boolean
  let answer: PodInfoOnMountAnswer | Error
  let reads: number
  let events: string[]
  beforeEach(() => {
    now = 1_000_000
    isStated = false
    answer = new Error('connect ECONNREFUSED')
    reads = 0
    events = []
  })

  function makeGuard(hasAccess = true): PodInfoOnMountGuard {
    const readObject = async () => {
      reads++
      if (answer instanceof Error) throw answer
      return answer
    }
    return new PodInfoOnMountGuard({
      name: 'modekeep.csi',
      isStated: async () => isStated,
      readObject: hasAccess ? readObject : undefined,
      now: () => now,
      log: (level, event, facts) => events.push(`${level} ${event}: ${facts?.message}`),
    })
  }
  const refused = (why: string) => ({ code: 'FAILED_PRECONDITION', message: expect.stringContaining(why) })

  it('refuses to publish unless the configuration or the object has the field', async () => {
    await expect(makeGuard(false).assertConfirmed()).rejects.toMatchObject(refused('may not read the object'))
    await expect(makeGuard().assertConfirmed()).rejects.toMatchObject(refused('connect ECONNREFUSED'))
    answer = false
    await expect(makeGuard().assertConfirmed()).rejects.toMatchObject(refused('the object does not say so'))
    answer = 'no object'
    await expect(makeGuard().assertConfirmed()).rejects.toMatchObject(refused('there is no such object'))
  })

  it('allows to publish if the configuration or the object has the field', async () => {
    answer = true
    await makeGuard().assertConfirmed()
    expect(reads).toBe(1)
    answer = new Error('away')
    isStated = true
    await makeGuard().assertConfirmed()
    await makeGuard(false).assertConfirmed()
    expect(reads).toBe(1)
  })

  it('reads the object once for many calls, and again after five seconds if publishing was refused', async () => {
    const guard = makeGuard()
    const calls = () => Promise.allSettled([1, 2, 3].map(() => guard.assertConfirmed()))
    await calls()
    now += 4999
    await calls()
    expect(reads).toBe(1)
    now += 1
    answer = true
    expect((await calls()).map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'fulfilled'])
    expect(reads).toBe(2)
    now += POD_INFO_CHECK_INTERVAL_MS
    await calls()
    expect(reads).toBe(2)
  })

  it('keeps the last answer while the API server is unreachable, and refuses when the object has changed', async () => {
    answer = true
    const guard = makeGuard()
    await guard.assertConfirmed()
    answer = new Error('away')
    await guard.check()
    await guard.assertConfirmed()
    answer = false
    await guard.check()
    await expect(guard.assertConfirmed()).rejects.toMatchObject(refused('the object does not say so'))
    expect(events).toEqual([
      'info pod-info: the object says so',
      'info pod-info: the object cannot be read: away',
      'warn pod-info-unconfirmed: the object does not say so',
    ])
  })

  it('makes a publication wait for a running check', async () => {
    answer = true
    const guard = makeGuard()
    await guard.check()
    answer = false
    const checking = guard.check()
    await expect(guard.assertConfirmed()).rejects.toMatchObject(refused('the object does not say so'))
    await checking
  })
})

describe('the answer of the API server', () => {
  const object = (over: object) => JSON.stringify({ kind: 'CSIDriver', metadata: { name: 'modekeep.csi' }, ...over })

  it.each([
    [{ spec: { podInfoOnMount: true } }, true],
    [{ spec: { podInfoOnMount: false } }, false],
    [{ spec: { podInfoOnMount: 'true' } }, false],
    [{ spec: {} }, false],
    [{}, false],
  ])('%j is read as %s', (over, expected) => expect(parsePodInfoOnMount(object(over), 'modekeep.csi')).toBe(expected))

  it.each([object({ kind: 'Status' }), object({ metadata: { name: 'other.csi' } }), 'null', '[]', '<html>'])(
    '%s is rejected',
    (text) => expect(() => parsePodInfoOnMount(text, 'modekeep.csi')).toThrow(),
  )
})
