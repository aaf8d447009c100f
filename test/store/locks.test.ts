import { beforeEach, expect, it } from 'vitest'
import { holdPlace, tryHoldPlace } from '../../src/store/leftovers.ts'
import { isPlaceBusy, isVolumeBusy, tryLockNode, tryLockPlace } from '../../src/store/locks.ts'
import { mountPlace, type Place, volumePlace } from '../../src/store/places.ts'
import { memoryStage, type Stage } from '../helpers/stage.ts'

let stage: Stage
let mount: Place
let volume: Place
beforeEach(() => {
  stage = memoryStage()
  mount = mountPlace(stage, '/pods/a/v')
  volume = volumePlace(stage, '1.2-3-4')
})

it('is had by one call at a time, and by the next that waits once it is given back', async () => {
  const first = await holdPlace(stage.session(), mount)
  expect(isPlaceBusy(stage, mount)).toBe(true)
  expect(tryHoldPlace(stage.session(), mount)).toBeUndefined()
  let isNext = false
  const next = holdPlace(stage.session(), mount).then((lock) => {
    isNext = true
    return lock
  })
  await new Promise((resolve) => setTimeout(resolve, 10))
  expect(isNext).toBe(false)
  first[Symbol.dispose]()
  const second = await next
  expect(isPlaceBusy(stage, mount)).toBe(true)
  second[Symbol.dispose]()
  expect(isPlaceBusy(stage, mount)).toBe(false)
})

it('of a mount directory, of a volume and of the works on the whole node are different ones', () => {
  const works = ['reservations', 'metrics', 'sweep', 'sub-paths', 'loop'] as const
  const locks = [
    tryLockPlace(stage, mount),
    tryLockPlace(stage, volume),
    ...works.map((work) => tryLockNode(stage, work)),
  ]
  expect(locks.includes(undefined)).toBe(false)
  expect(works.map((work) => tryLockNode(stage, work))).toEqual(works.map(() => undefined))
  expect([isPlaceBusy(stage, mountPlace(stage, '/pods/b/v')), isVolumeBusy(stage, '1.2-3-5')]).toEqual([false, false])
  expect([isPlaceBusy(stage, mount), isPlaceBusy(stage, volume), isVolumeBusy(stage, '1.2-3-4')]).toEqual([
    true,
    true,
    true,
  ])
})

it('whose place its last holder is just removing is asked for again', () => {
  const missing = Object.assign(new Error('ENOENT'), { code: 'ENOENT' })
  const denied = Object.assign(new Error('EACCES'), { code: 'EACCES' })
  const failing = (error: Error) => {
    const tryLock = () => {
      throw error
    }
    return { host: { ...stage.host, tryLock }, config: stage.config }
  }
  expect(tryLockPlace(failing(missing), mount)).toBeUndefined()
  expect(() => tryLockPlace(failing(denied), mount)).toThrow(/cannot lock .*lock .*EACCES/)
})
