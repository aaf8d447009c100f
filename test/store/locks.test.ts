import { beforeEach, expect, it } from 'vitest'
import {
  isMountBusy,
  isPlaceBusy,
  isVolumeBusy,
  lockMount,
  lockVolume,
  tryLockMetrics,
  tryLockMount,
  tryLockPlace,
} from '../../src/store/locks.ts'
import { mountPlace, volumePlace } from '../../src/store/places.ts'
import { memoryStage, type Stage } from '../helpers/stage.ts'

const STATE = '/node/state'
const [DIRECTORY, VOLUME] = ['/pods/a/v', '1.2-3-4']

let stage: Stage
beforeEach(() => {
  stage = memoryStage()
})

it('is had by one call at a time, and by the next that waits once it is given back', async () => {
  const { host } = stage
  const first = await lockMount(host, STATE, DIRECTORY)
  expect(isMountBusy(host, STATE, DIRECTORY)).toBe(true)
  expect(tryLockMount(host, STATE, DIRECTORY)).toBeUndefined()
  let isNext = false
  const next = lockMount(host, STATE, DIRECTORY).then((lock) => {
    isNext = true
    return lock
  })
  await new Promise((resolve) => setTimeout(resolve, 10))
  expect(isNext).toBe(false)
  first.release()
  const second = await next
  expect(isMountBusy(host, STATE, DIRECTORY)).toBe(true)
  second.release()
  expect(isMountBusy(host, STATE, DIRECTORY)).toBe(false)
})

it('of a mount directory, of a volume and of the metrics are different ones', async () => {
  const { host } = stage
  const locks = [
    await lockMount(host, STATE, DIRECTORY),
    await lockVolume(host, STATE, VOLUME),
    tryLockMetrics(host, STATE),
  ]
  expect(locks.includes(undefined)).toBe(false)
  expect([isMountBusy(host, STATE, '/pods/b/v'), isVolumeBusy(host, STATE, '1.2-3-5')]).toEqual([false, false])
  expect([mountPlace(STATE, DIRECTORY), volumePlace(STATE, VOLUME)].map(({ path }) => isPlaceBusy(host, path))).toEqual(
    [true, true],
  )
})

it('whose place its last holder is just removing is asked for again', () => {
  const { host } = stage
  const missing = Object.assign(new Error('ENOENT'), { code: 'ENOENT' })
  const denied = Object.assign(new Error('EACCES'), { code: 'EACCES' })
  const failing = (error: Error) => ({
    ...host,
    tryLock: () => {
      throw error
    },
  })
  const { path } = mountPlace(STATE, DIRECTORY)
  expect(tryLockPlace(failing(missing), path)).toBeUndefined()
  expect(() => tryLockPlace(failing(denied), path)).toThrow(/cannot lock .*lock .*EACCES/)
})
