import { beforeEach, describe, expect, it } from 'vitest'
import type { Lock } from '../../src/kernel/host.ts'
import {
  findVolumeWalkerPid,
  isRecordDirectoryBusy,
  isVolumeBusy,
  locateWalkerLock,
  readWhileVolumeIdle,
} from '../../src/state/lock-holders.ts'
import {
  acquireRecordLock,
  removeLeftoverRecordDirectory,
  tryAcquireNodeLock,
  tryAcquireRecordLock,
  tryLockRecordDirectory,
} from '../../src/state/locks.ts'
import {
  listVolumeReservations,
  reservationRecords,
  waitForReservationRelease,
} from '../../src/state/process-records.ts'
import {
  locateMountRecords,
  locatePublicationLock,
  locateVolumeRecords,
  type RecordDirectory,
} from '../../src/state/record-directories.ts'
import { memoryStage, type Stage } from '../helpers/stage.ts'

let stage: Stage
let mount: RecordDirectory
let volume: RecordDirectory
beforeEach(() => {
  stage = memoryStage()
  mount = locateMountRecords(stage, '/pods/a/v')
  volume = locateVolumeRecords(stage, '1.2-3-4')
})

it('a lock has one holder at a time, and a waiting call gets it after its release', async () => {
  const first = await acquireRecordLock(stage.session(), mount)
  expect(isRecordDirectoryBusy(stage, mount)).toBe(true)
  expect(tryAcquireRecordLock(stage.session(), mount)).toBeUndefined()
  let isNext = false
  const next = acquireRecordLock(stage.session(), mount).then((lock) => {
    isNext = true
    return lock
  })
  await new Promise((resolve) => setTimeout(resolve, 10))
  expect(isNext).toBe(false)
  first[Symbol.dispose]()
  const second = await next
  expect(isRecordDirectoryBusy(stage, mount)).toBe(true)
  second[Symbol.dispose]()
  expect(isRecordDirectoryBusy(stage, mount)).toBe(false)
})

it('the locks of a mount directory, of a volume and of the node are different', () => {
  const works = ['reservations', 'metrics', 'sweep', 'sub-paths', 'loop'] as const
  const locks = [
    tryLockRecordDirectory(stage, mount),
    tryLockRecordDirectory(stage, volume),
    ...works.map((work) => tryAcquireNodeLock(stage, work)),
  ]
  expect(locks.includes(undefined)).toBe(false)
  expect(works.map((work) => tryAcquireNodeLock(stage, work))).toEqual(works.map(() => undefined))
  expect([
    isRecordDirectoryBusy(stage, locateMountRecords(stage, '/pods/b/v')),
    isVolumeBusy(stage, '1.2-3-5'),
  ]).toEqual([false, false])
  expect([
    isRecordDirectoryBusy(stage, mount),
    isRecordDirectoryBusy(stage, volume),
    isVolumeBusy(stage, '1.2-3-4'),
  ]).toEqual([true, true, true])
})

it('a lock whose directory is being removed is not acquired, and any other error is thrown', () => {
  const missing = Object.assign(new Error('ENOENT'), { code: 'ENOENT' })
  const denied = Object.assign(new Error('EACCES'), { code: 'EACCES' })
  const failing = (error: Error) => {
    const tryLock = () => {
      throw error
    }
    return { host: { ...stage.host, tryLock }, config: stage.config }
  }
  expect(tryLockRecordDirectory(failing(missing), mount)).toBeUndefined()
  expect(() => tryLockRecordDirectory(failing(denied), mount)).toThrow(/cannot lock .*lock .*EACCES/)
})

describe('a lock of a process that waits in the kernel', () => {
  const sessionOf = (activity: () => string | undefined, holder = () => 4711) => ({
    ...stage.session(),
    host: { ...stage.host, lockHolder: holder, readBlockedActivity: activity },
  })
  const STUCK = /^process 4711 works on the volume for another call and makes no progress/

  it.each([
    ['a volume', () => volume],
    ['a publication for one target', () => locatePublicationLock(stage, 'id:pv')],
  ])('of %s makes a waiting call fail with the process id', async (_what, placeOf) => {
    using _ = await acquireRecordLock(stage.session(), placeOf())
    await expect(
      acquireRecordLock(
        sessionOf(() => 'waits'),
        placeOf(),
      ),
    ).rejects.toThrow(STUCK)
  })

  it('of a mount directory is waited for, even if the process stays in the kernel', async () => {
    const first = await acquireRecordLock(stage.session(), mount)
    const next = acquireRecordLock(
      sessionOf(() => 'waits'),
      mount,
    )
    await new Promise((resolve) => setTimeout(resolve, 1500))
    first[Symbol.dispose]()
    ;(await next)[Symbol.dispose]()
  })

  it.each([
    ['makes progress', () => 4711, () => String(performance.now())],
    ['is another one after a while', () => Math.floor(performance.now() / 500), () => 'waits'],
  ])('is waited for while the process %s', async (_what, holder, activity) => {
    const first = await acquireRecordLock(stage.session(), volume)
    const next = acquireRecordLock(sessionOf(activity, holder), volume)
    await new Promise((resolve) => setTimeout(resolve, 2500))
    first[Symbol.dispose]()
    ;(await next)[Symbol.dispose]()
  })
})

describe('a volume that a process of an ended call still walks', () => {
  const name = '1.2-3-4'
  let walker: Lock
  beforeEach(() => {
    stage.host.files.makeDirectory(volume.path)
    const path = locateWalkerLock(stage, name)
    const lock = stage.host.tryLock(path)
    if (lock === undefined) throw new Error('the lock is not free')
    walker = lock
    stage.fs.writeFileSync(path, '4711')
  })

  it('counts as busy, and none of its records is removed', () => {
    expect([isVolumeBusy(stage, name), isRecordDirectoryBusy(stage, volume)]).toEqual([true, false])
    expect(readWhileVolumeIdle(stage, name, () => 'read')).toBe('busy')
    expect(findVolumeWalkerPid(stage, name)).toBe(4711)
    expect(removeLeftoverRecordDirectory(stage.session(), volume)).toBe(false)
    expect(stage.fs.readdirSync(volume.path).sort()).toEqual(['lock', 'walker.lock'])
    walker.release()
    expect([isVolumeBusy(stage, name), findVolumeWalkerPid(stage, name)]).toEqual([false, undefined])
    expect(removeLeftoverRecordDirectory(stage.session(), volume)).toBe(true)
    expect(stage.fs.existsSync(volume.path)).toBe(false)
  })

  it('is refused to other calls with the process id, unless the process ends within a moment', async () => {
    await expect(acquireRecordLock(stage.session(), volume)).rejects.toThrow(
      /^process 4711 still walks the volume for a call/,
    )
    expect(isRecordDirectoryBusy(stage, volume)).toBe(false)
    const next = acquireRecordLock(stage.session(), volume)
    await new Promise((resolve) => setTimeout(resolve, 10))
    walker.release()
    const held = await next
    expect(isRecordDirectoryBusy(stage, volume)).toBe(true)
    held[Symbol.dispose]()
  })

  it('keeps its reservation, and waiting calls are refused', async () => {
    reservationRecords.write(stage, { volume: name, group: 2000 })
    expect(listVolumeReservations(stage).map(({ record }) => record?.group)).toEqual([2000])
    await expect(waitForReservationRelease(stage, name)).rejects.toThrow(/^process 4711 still walks/)
    walker.release()
    expect(listVolumeReservations(stage)).toEqual([])
    await waitForReservationRelease(stage, name)
  })

  it('is waited for if the call is still running', async () => {
    walker.release()
    const call = await acquireRecordLock(stage.session(), volume)
    const again = stage.host.tryLock(locateWalkerLock(stage, name))
    let isNext = false
    const next = acquireRecordLock(stage.session(), volume).then((lock) => {
      isNext = true
      return lock
    })
    await new Promise((resolve) => setTimeout(resolve, 2500))
    expect(isNext).toBe(false)
    again?.release()
    call[Symbol.dispose]()
    ;(await next)[Symbol.dispose]()
  })
})
