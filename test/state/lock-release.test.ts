import { beforeEach, describe, expect, it } from 'vitest'
import { forgetAfterReboot, forgetMountRecord, forgetVolumeRecords } from '../../src/state/forget.ts'
import {
  releaseRecordLock,
  removeLeftoverRecordDirectories,
  removeLeftoverRecordDirectory,
  removeTransientRecordFiles,
  tryAcquireRecordLock,
  tryLockRecordDirectory,
} from '../../src/state/locks.ts'
import { listReadableMountRecords, mountRecords } from '../../src/state/mount-record.ts'
import { reservationRecords } from '../../src/state/process-records.ts'
import {
  listLeftoverFiles,
  listMountRecordDirectories,
  locateMountRecords,
  locateVolumeRecords,
  type RecordDirectory,
} from '../../src/state/record-directories.ts'
import { volumeRecords } from '../../src/state/volume-record.ts'
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

/** Takes and releases the lock, like a call that records nothing. */
function passBy(place: RecordDirectory): void {
  using lock = tryAcquireRecordLock(stage.session(), place)
  expect(lock).toBeDefined()
}

/** Writes the record of a mount, of the current boot by default. */
async function recordMount(directory: string, boot = stage.host.bootId()): Promise<void> {
  makeTree(stage.fs, `${stage.top}/volumes/one`, ['file first 0644'])
  await stage.mount('template', { source: `${stage.top}/volumes/one` })
  const [record] = listReadableMountRecords(stage)
  await stage.unmount('template')
  if (record) mountRecords.write(stage, { ...record, directory, boot })
}

describe.each([
  ['a mount directory', () => locateMountRecords(stage, DIRECTORY)],
  ['a volume', () => locateVolumeRecords(stage, VOLUME)],
])('the record directory of %s', (_what, placeOf) => {
  const removes = () => removeLeftoverRecordDirectory(stage.session(), placeOf())

  it.each([
    [[]],
    [['lock']],
    [['record.json.new']],
    [['lock', 'reservation.json', 'reservation.json.new', 'progress.json', 'progress.json.new']],
  ])('is removed if its only file is %j', (files) => {
    put(placeOf(), ...files)
    expect(listLeftoverFiles(stage, placeOf())).toHaveLength(files.length)
    expect(removes()).toBe(true)
    expect(isThere(placeOf())).toBe(false)
  })

  it.each(['record.json', 'journal.db-wal', 'notes of a user'])('stays with all its files next to %s', (name) => {
    put(placeOf(), name, 'reservation.json')
    expect(listLeftoverFiles(stage, placeOf())).toBeUndefined()
    expect(removes()).toBe(false)
    expect(names(placeOf())).toEqual(['reservation.json', name, 'lock'].sort())
  })

  it('stays while a call has its lock, with any files in it', () => {
    put(placeOf(), 'reservation.json')
    const lock = stage.host.tryLock(`${placeOf().path}/lock`)
    expect(removes()).toBe(false)
    expect(names(placeOf())).toEqual(['lock', 'reservation.json'])
    lock?.release()
    expect(removes()).toBe(true)
  })

  it('counts as removed if it does not exist', () => {
    expect(removes()).toBe(true)
  })

  it('keeps its record when the leftovers of an interrupted call are removed', () => {
    put(placeOf(), 'record.json', 'reservation.json', 'progress.json.new', 'lock')
    removeTransientRecordFiles(stage.session(), placeOf())
    expect(names(placeOf())).toEqual(['lock', 'record.json'])
  })
})

describe('a lock', () => {
  it('is removed with its mount if nothing is recorded, and stays with its record', async () => {
    passBy(locateMountRecords(stage, DIRECTORY))
    expect(isThere(locateMountRecords(stage, DIRECTORY))).toBe(false)
    await recordMount(DIRECTORY)
    passBy(locateMountRecords(stage, DIRECTORY))
    expect(names(locateMountRecords(stage, DIRECTORY))).toEqual(['lock', 'record.json'])
  })

  it('of a mount is removed even if a mount directory below it has a record', async () => {
    const [short, long] = [`/${'x'.repeat(197)}`, `/${'x'.repeat(198)}`]
    await recordMount(long)
    passBy(locateMountRecords(stage, short))
    expect(names(locateMountRecords(stage, short))).toEqual(['+x'])
    expect(listMountRecordDirectories(stage)).toMatchObject([{ directory: long, hasRecord: true }])
  })

  it('is released with a warning if its directory cannot be listed', () => {
    const { files } = stage.host
    const list = () => {
      throw new Error('not today')
    }
    for (const place of [locateMountRecords(stage, DIRECTORY), locateVolumeRecords(stage, VOLUME)]) {
      const lock = tryAcquireRecordLock(stage.session(), place)
      stage.host.files = { ...files, list }
      lock?.[Symbol.dispose]()
      stage.host.files = files
    }
    expect(stage.warnings).toEqual([
      `could not release the lock of ${DIRECTORY}: not today`,
      expect.stringContaining('could not remove an empty journal: not today'),
      `could not release the lock of volume ${VOLUME}: not today`,
    ])
    removeLeftoverRecordDirectories(stage.session())
    expect([locateMountRecords(stage, DIRECTORY), locateVolumeRecords(stage, VOLUME)].map(isThere)).toEqual([
      false,
      false,
    ])
  })

  it('that cannot be removed is still released', () => {
    const place = locateMountRecords(stage, DIRECTORY)
    const lock = tryLockRecordDirectory(stage, place)
    const told: (boolean | undefined)[] = []
    const release = (discard?: boolean) => {
      told.push(discard)
      lock?.release()
      throw Object.assign(new Error('EIO'), { code: 'EIO' })
    }
    const failing = { release, [Symbol.dispose]: release }
    expect(() => releaseRecordLock(stage.session(), place, failing)).toThrow(/cannot remove .*lock/)
    expect(told).toEqual([true])
    expect(stage.host.isLocked(`${place.path}/lock`)).toBe(false)
  })
})

describe('a record', () => {
  it('of a mount is removed after the leftovers of its volume', async () => {
    await recordMount(DIRECTORY)
    put(locateVolumeRecords(stage, VOLUME), 'lock')
    forgetMountRecord(stage.session(), DIRECTORY, VOLUME)
    expect(isThere(locateVolumeRecords(stage, VOLUME))).toBe(false)
    expect(listReadableMountRecords(stage)).toEqual([])
  })

  it("of a mount stays if its volume's leftovers cannot be removed, and the next call finds them by it", async () => {
    await recordMount(DIRECTORY)
    put(locateVolumeRecords(stage, VOLUME), 'lock', 'reservation.json')
    const { files } = stage.host
    const remove = () => {
      throw new Error('not today')
    }
    stage.host.files = { ...files, remove }
    expect(() => forgetMountRecord(stage.session(), DIRECTORY, VOLUME)).toThrow('not today')
    stage.host.files = files
    expect(listReadableMountRecords(stage)).toHaveLength(1)
    expect(stage.host.isLocked(`${locateVolumeRecords(stage, VOLUME).path}/lock`)).toBe(false)
  })

  it('of a volume is removed with its journal, and foreign files stay', () => {
    volumeRecords.write(stage, RECORD)
    put(
      locateVolumeRecords(stage, VOLUME),
      'journal.db',
      'journal.db-wal',
      'journal.db-shm',
      'journal.db-journal',
      'notes',
    )
    removeLeftoverRecordDirectory(stage.session(), locateVolumeRecords(stage, VOLUME))
    expect(volumeRecords.read(stage, VOLUME)).toMatchObject(RECORD)
    forgetVolumeRecords(stage.session(), VOLUME)
    expect(names(locateVolumeRecords(stage, VOLUME))).toEqual(['lock', 'notes'])
  })

  it('of a running call for a volume is removed with the leftovers of the volume', () => {
    put(locateVolumeRecords(stage, VOLUME), 'lock')
    reservationRecords.write(stage, { volume: VOLUME })
    expect(removeLeftoverRecordDirectory(stage.session(), locateVolumeRecords(stage, VOLUME))).toBe(true)
    expect(reservationRecords.has(stage, VOLUME)).toBe(false)
  })

  it('of mounts before a reboot is removed once, and not if a call has its lock', async () => {
    await recordMount(DIRECTORY, 'an earlier boot')
    await recordMount('/pods/b/v', 'an earlier boot')
    await recordMount('/pods/c/v')
    stage.fs.rmSync(`${stateDir}/boot`, { force: true })
    const lock = tryLockRecordDirectory(stage, locateMountRecords(stage, '/pods/b/v'))
    forgetAfterReboot(stage.session())
    expect(stage.noted).toEqual({ sweptRecords: 1 })
    const left = listReadableMountRecords(stage).map(({ directory }) => directory)
    expect(left.sort()).toEqual(['/pods/b/v', '/pods/c/v'])
    lock?.release()
    forgetAfterReboot(stage.session())
    expect(listReadableMountRecords(stage)).toHaveLength(2)
  })

  it('of a mount that a power cut left empty is removed, by a later call if a call has its lock', () => {
    const place = locateMountRecords(stage, DIRECTORY)
    put(place, 'record.json')
    stage.fs.writeFileSync(`${place.path}/record.json`, '')
    const lock = tryLockRecordDirectory(stage, place)
    forgetAfterReboot(stage.session())
    expect(names(place)).toContain('record.json')
    lock?.release()
    forgetAfterReboot(stage.session())
    expect(isThere(place)).toBe(false)
  })
})

it('the next call removes leftover files of every kind, and no other file', async () => {
  const other = locateVolumeRecords(stage, '1.2-4-5')
  put(locateMountRecords(stage, '/pods/x/v'), 'lock')
  put(locateVolumeRecords(stage, VOLUME), 'progress.json')
  put(other, 'journal.db-wal', 'lock')
  await recordMount(DIRECTORY)
  removeLeftoverRecordDirectories(stage.session())
  expect(listMountRecordDirectories(stage)).toMatchObject([{ directory: DIRECTORY, hasRecord: true }])
  expect(isThere(locateVolumeRecords(stage, VOLUME))).toBe(false)
  expect(names(other)).toEqual(['journal.db-wal', 'lock'])
})
