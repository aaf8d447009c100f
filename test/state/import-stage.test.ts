import { afterEach, beforeEach, expect, it } from 'vitest'
import type { Lock } from '../../src/kernel/host.ts'
import { JournalImportStage } from '../../src/state/import-stage.ts'
import { tryLockRecordDirectory } from '../../src/state/locks.ts'
import { listVolumesInImport, locateImportDirectory, locateVolumeRecords } from '../../src/state/record-directories.ts'
import type { Session } from '../../src/state/session.ts'
import { type VolumeRecord, volumeRecords } from '../../src/state/volume-record.ts'
import { onEveryStage, type Stage } from '../helpers/stage.ts'

const VOLUME = '1.2-3-4'
const RECORD: VolumeRecord = {
  volume: VOLUME,
  source: '/srv/data',
  group: 2000,
  groupAccess: 'keep',
  complete: true,
  restorePending: true,
}

onEveryStage('an import', (open) => {
  let stage: Stage
  let session: Session
  beforeEach(() => {
    stage = open()
    session = stage.session()
  })
  afterEach(() => stage.close())

  const written = async (on = session) => {
    const made = JournalImportStage.tryOpen(on, VOLUME) ?? expect.unreachable()
    await made.write(RECORD, { rows: [], unsettled: [], disk: undefined })
    return made
  }
  const files = () => stage.fs.readdirSync(locateVolumeRecords(session, VOLUME).path).sort()

  /** Returns the same node, where another call creates the volume's record directory just before the rename. */
  function raced(meanwhile: () => void): Session {
    let times = 0
    const { files } = session.host
    const moveDirectory = (from: string, to: string) => {
      if (times++ === 0) meanwhile()
      files.moveDirectory(from, to)
    }
    return { ...session, host: { ...session.host, files: { ...files, moveDirectory } } }
  }

  it("an imported journal has the volume's lock from the moment of its publication", async () => {
    using made = await written()
    expect(await made.publish()).toBe('published')
    expect(files()).toEqual(['journal.db', 'lock', 'record.json'])
    expect(volumeRecords.read(session, VOLUME)).toMatchObject(RECORD)
    if (stage.world === undefined)
      expect(tryLockRecordDirectory(session, locateVolumeRecords(session, VOLUME))).toBeUndefined()
    made[Symbol.dispose]()
    expect(tryLockRecordDirectory(session, locateVolumeRecords(session, VOLUME))?.release()).toBeUndefined()
    expect(listVolumesInImport(session)).toEqual([])
  })

  it("an import waits for a call that has taken the volume's lock during the import", async () => {
    let other: Lock | undefined
    const on = raced(() => {
      other = tryLockRecordDirectory(session, locateVolumeRecords(session, VOLUME))
    })
    using made = await written(on)
    setTimeout(() => other?.release(), 100)
    expect(await made.publish()).toBe('published')
    expect(other).toBeDefined()
    expect(files()).toEqual(['journal.db', 'lock', 'record.json'])
  })

  it('an import is given up and leaves no file if another call has recorded the volume during the import', async () => {
    const others = { ...RECORD, group: 3000 }
    const on = raced(() => volumeRecords.write(session, others))
    {
      using made = await written(on)
      expect(await made.publish()).toBe('recorded')
    }
    expect(volumeRecords.read(session, VOLUME)).toMatchObject(others)
    expect(listVolumesInImport(session)).toEqual([])
    expect(stage.fs.existsSync(locateImportDirectory(session, VOLUME).path)).toBe(false)
  })

  it("an import is given up if another call holds the volume's lock for too long", async () => {
    using _ = tryLockRecordDirectory(session, locateVolumeRecords(session, VOLUME))
    using made = await written()
    expect(await made.publish()).toBe('busy')
    expect(files()).toEqual(['lock'])
  }, 20_000)
})
