import { beforeEach, describe, expect, it } from 'vitest'
import { forgetAfterBoot, forgetMount, forgetVolume } from '../../src/store/forget.ts'
import {
  releaseMount,
  releasePlace,
  releaseVolume,
  removeLeftover,
  removeLeftovers,
  removeTransient,
  removeVolumeLeftover,
} from '../../src/store/leftovers.ts'
import { lockMount, lockVolume } from '../../src/store/locks.ts'
import { listMountRecords, writeMountRecord } from '../../src/store/mount-record.ts'
import { leftoverFiles, listMountPlaces, mountPlace, volumePlace } from '../../src/store/places.ts'
import { readVolumeRecord, writeVolumeRecord } from '../../src/store/volume-record.ts'
import { memoryStage, type Stage } from '../helpers/stage.ts'
import { makeTree } from '../helpers/tree.ts'

const VOLUME = '1.2-3-4'
const DIRECTORY = '/pods/a/v'
const RECORD = {
  volume: VOLUME,
  source: '/srv/a',
  group: 7,
  groupAccess: 'keep',
  complete: true,
  restorePending: false,
} as const

let stage: Stage
let stateDir: string
beforeEach(() => {
  stage = memoryStage()
  stateDir = stage.config.stateDir
})

const put = (place: { path: string }, ...names: string[]) => {
  stage.fs.mkdirSync(place.path, { recursive: true })
  for (const name of names) stage.fs.writeFileSync(`${place.path}/${name}`, 'x')
}
const isThere = ({ path }: { path: string }) => stage.fs.existsSync(path)
const names = ({ path }: { path: string }) => stage.host.files.list(path).sort()

/** Of today's boot unless another is named. */
async function recordMount(directory: string, boot = stage.host.bootId()): Promise<void> {
  makeTree(stage.fs, `${stage.top}/volumes/one`, ['file first 0644'])
  await stage.mount('template', { source: `${stage.top}/volumes/one` })
  const [record] = listMountRecords(stage.host, stateDir)
  await stage.unmount('template')
  if (record) writeMountRecord(stage.host, stateDir, { ...record, directory, boot })
}

describe.each([
  ['a mount directory', () => mountPlace(stateDir, DIRECTORY)],
  ['a volume', () => volumePlace(stateDir, VOLUME)],
])('the place of %s', (_what, placeOf) => {
  const removes = () => removeLeftover(stage.session(), placeOf())

  it.each([
    [[]],
    [['lock']],
    [['record.json.new']],
    [['lock', 'reservation.json', 'reservation.json.new', 'progress.json', 'progress.json.new']],
  ])('goes where it has %j and no more', (files) => {
    put(placeOf(), ...files)
    expect(leftoverFiles(stage.host, placeOf())).toHaveLength(files.length)
    expect(removes()).toBe(true)
    expect(isThere(placeOf())).toBe(false)
  })

  it.each(['record.json', 'journal.db-wal', 'notes of a person'])(
    'stays, with all that is in it, beside %s',
    (name) => {
      put(placeOf(), name, 'reservation.json')
      expect(leftoverFiles(stage.host, placeOf())).toBeUndefined()
      expect(removes()).toBe(false)
      expect(names(placeOf())).toEqual(['reservation.json', name, 'lock'].sort())
    },
  )

  it('stays while a call holds its lock, whatever is in it', () => {
    put(placeOf(), 'reservation.json')
    const lock = stage.host.tryLock(`${placeOf().path}/lock`)
    expect(removes()).toBe(false)
    expect(names(placeOf())).toEqual(['lock', 'reservation.json'])
    lock?.release()
    expect(removes()).toBe(true)
  })

  it('that does not exist is gone already', () => {
    expect(removes()).toBe(true)
  })

  it('keeps what is remembered when what an interrupted call left is removed', () => {
    put(placeOf(), 'record.json', 'reservation.json', 'progress.json.new', 'lock')
    removeTransient(stage.session(), placeOf())
    expect(names(placeOf())).toEqual(['lock', 'record.json'])
  })
})

describe('a lock', () => {
  it('goes with its mount where nothing is recorded of that, and stays with its record', async () => {
    const first = await lockMount(stage.host, stateDir, DIRECTORY)
    releaseMount(stage.session(), DIRECTORY, first)
    expect(isThere(mountPlace(stateDir, DIRECTORY))).toBe(false)
    await recordMount(DIRECTORY)
    releaseMount(stage.session(), DIRECTORY, await lockMount(stage.host, stateDir, DIRECTORY))
    expect(names(mountPlace(stateDir, DIRECTORY))).toEqual(['lock', 'record.json'])
  })

  it('of a mount goes where the record of a longer name lies below', async () => {
    const [short, long] = [`/${'x'.repeat(197)}`, `/${'x'.repeat(198)}`]
    await recordMount(long)
    releaseMount(stage.session(), short, await lockMount(stage.host, stateDir, short))
    expect(names(mountPlace(stateDir, short))).toEqual(['+x'])
    expect(listMountPlaces(stage.host, stateDir)).toMatchObject([{ directory: long, hasRecord: true }])
  })

  it('is given back where its place cannot be looked at, with a warning', async () => {
    const { files } = stage.host
    const list = () => {
      throw new Error('not today')
    }
    for (const [release, lock] of [
      [() => releaseMount, await lockMount(stage.host, stateDir, DIRECTORY)],
      [() => releaseVolume, await lockVolume(stage.host, stateDir, VOLUME)],
    ] as const) {
      stage.host.files = { ...files, list }
      release()(stage.session(), release() === releaseMount ? DIRECTORY : VOLUME, lock)
      stage.host.files = files
    }
    expect(stage.warnings).toEqual([
      `the lock of ${DIRECTORY} was left behind: not today`,
      expect.stringContaining('an empty journal may have stayed: not today'),
      `the lock of volume ${VOLUME} was left behind: not today`,
    ])
    removeLeftovers(stage.session())
    expect([mountPlace(stateDir, DIRECTORY), volumePlace(stateDir, VOLUME)].map(isThere)).toEqual([false, false])
  })

  it('that cannot be removed is given back all the same', async () => {
    const place = mountPlace(stateDir, DIRECTORY)
    const lock = await lockMount(stage.host, stateDir, DIRECTORY)
    const told: (boolean | undefined)[] = []
    const failing = {
      release(discard?: boolean) {
        told.push(discard)
        lock.release()
        throw Object.assign(new Error('EIO'), { code: 'EIO' })
      },
    }
    expect(() => releasePlace(stage.session(), place, failing)).toThrow(/cannot remove .*lock/)
    expect(told).toEqual([true])
    expect(stage.host.isLocked(`${place.path}/lock`)).toBe(false)
  })
})

describe('what is remembered', () => {
  it('of a mount goes after the leftover of its volume', async () => {
    await recordMount(DIRECTORY)
    put(volumePlace(stateDir, VOLUME), 'lock')
    forgetMount(stage.session(), DIRECTORY, VOLUME)
    expect(isThere(volumePlace(stateDir, VOLUME))).toBe(false)
    expect(listMountRecords(stage.host, stateDir)).toEqual([])
  })

  it('of a mount stays where its volume cannot be cleared, by which the next call finds that', async () => {
    await recordMount(DIRECTORY)
    put(volumePlace(stateDir, VOLUME), 'lock', 'reservation.json')
    const { files } = stage.host
    const remove = () => {
      throw new Error('not today')
    }
    stage.host.files = { ...files, remove }
    expect(() => forgetMount(stage.session(), DIRECTORY, VOLUME)).toThrow('not today')
    stage.host.files = files
    expect(listMountRecords(stage.host, stateDir)).toHaveLength(1)
    expect(stage.host.isLocked(`${volumePlace(stateDir, VOLUME).path}/lock`)).toBe(false)
  })

  it('of a volume goes with its journal, and nothing of other people does', () => {
    writeVolumeRecord(stage.host, stateDir, RECORD)
    put(volumePlace(stateDir, VOLUME), 'journal.db', 'journal.db-wal', 'journal.db-shm', 'journal.db-journal', 'notes')
    removeVolumeLeftover(stage.session(), VOLUME)
    expect(readVolumeRecord(stage.host, stateDir, VOLUME)).toMatchObject(RECORD)
    forgetVolume(stage.session(), VOLUME)
    expect(names(volumePlace(stateDir, VOLUME))).toEqual(['lock', 'notes'])
  })

  it('of mounts before a reboot goes once, and none that a call is at work on', async () => {
    await recordMount(DIRECTORY, 'an earlier boot')
    await recordMount('/pods/b/v', 'an earlier boot')
    await recordMount('/pods/c/v')
    stage.fs.rmSync(`${stateDir}/boot`, { force: true })
    const lock = await lockMount(stage.host, stateDir, '/pods/b/v')
    forgetAfterBoot(stage.session())
    expect(stage.noted).toEqual({ sweptRecords: 1 })
    const left = listMountRecords(stage.host, stateDir).map(({ directory }) => directory)
    expect(left.sort()).toEqual(['/pods/b/v', '/pods/c/v'])
    lock.release()
    forgetAfterBoot(stage.session())
    expect(listMountRecords(stage.host, stateDir)).toHaveLength(2)
  })
})

it('a leftover of every kind is removed by the next call, and nothing else', async () => {
  const other = volumePlace(stateDir, '1.2-4-5')
  put(mountPlace(stateDir, '/pods/x/v'), 'lock')
  put(volumePlace(stateDir, VOLUME), 'progress.json')
  put(other, 'journal.db-wal', 'lock')
  await recordMount(DIRECTORY)
  removeLeftovers(stage.session())
  expect(listMountPlaces(stage.host, stateDir)).toMatchObject([{ directory: DIRECTORY, hasRecord: true }])
  expect(isThere(volumePlace(stateDir, VOLUME))).toBe(false)
  expect(names(other)).toEqual(['journal.db-wal', 'lock'])
})
