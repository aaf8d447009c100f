import { beforeEach, describe, expect, it } from 'vitest'
import { runVerb } from '../../../src/cli/commands/index.ts'
import { listVolumesWithRecords } from '../../../src/state/record-directories.ts'
import type { Session } from '../../../src/state/session.ts'
import { openJournalForReading } from '../../../src/state/volume-journal.ts'
import { volumeRecords } from '../../../src/state/volume-record.ts'
import { createDiskStage, PLACE } from '../../helpers/disk-stage.ts'
import type { Stage } from '../../helpers/stage.ts'
import { groups, listTree } from '../../helpers/tree.ts'
import type { MemoryFileSystem } from '../../memory-host/world.ts'

const FILE = '/node/data.journal'
const FS_GROUP = { groupId: 2000, access: 'keep', changePolicy: 'Always' } as const

let stage: Stage
let disk: MemoryFileSystem
let volume: string
/** The other node: its disks are the same ones, its state directory is not. */
let there: Session
beforeEach(async () => {
  ;({ stage, disk } = createDiskStage(['serial A', 'image of here']))
  await runVerb(stage.session(), { verb: 'apply', directory: PLACE, fsGroup: FS_GROUP })
  volume = listVolumesWithRecords(stage)[0] ?? ''
  there = { ...stage.session(), config: { ...stage.config, stateDir: '/node/state-b' } }
})

const exported = () =>
  runVerb(stage.session(), {
    verb: 'journal',
    action: 'export',
    target: { directory: PLACE },
    file: FILE,
    isForced: true,
  })
const imported = (at?: string) => runVerb(there, { verb: 'journal', action: 'import', file: FILE, at, isDry: false })

describe('the disk of an imported journal', () => {
  it('is the disk on which this node finds the volume', async () => {
    await exported()
    disk.disk = ['serial A', 'image of there']
    expect(await imported()).toMatchObject({ outcome: 'imported', source: PLACE })
    const now = { shown: 'serial A, image of there', identities: ['serial A', 'image of there'] }
    expect(volumeRecords.read(there, volume)?.disk).toEqual(now)
    using journal = openJournalForReading(there, volume, true)
    expect(journal?.disk).toBe('serial A, image of there\nserial A\nimage of there')
  })

  it('may differ from the recorded disk only if the operator named the directory', async () => {
    await exported()
    disk.disk = ['serial B']
    await expect(imported()).rejects.toThrow(
      `the records of volume ${volume} are of serial A, image of here, and this is serial B: a copy, or a forged one, as its content has the same name: if "${PLACE}" is the one that is meant, name it with --at`,
    )
    expect(stage.fs.existsSync(there.config.stateDir)).toBe(false)
    expect(await imported(PLACE)).toMatchObject({ outcome: 'imported' })
    expect(volumeRecords.read(there, volume)?.disk?.identities).toEqual(['serial B'])
    await runVerb(there, { verb: 'restore', target: { volume }, isDry: false, isForced: false })
    expect(groups(listTree(disk.fs as unknown as typeof stage.fs, '/')).one).toBe(7)
  })

  it('is read from the journal if the record is damaged', async () => {
    stage.fs.writeFileSync(`${stage.config.stateDir}/ownership/${volume}/record.json`, '{')
    await exported()
    disk.disk = ['serial B']
    await expect(imported()).rejects.toThrow(/are of serial A, image of here, and this is serial B/)
    disk.disk = ['serial A']
    expect(await imported()).toMatchObject({ outcome: 'imported', recorded: null })
  })

  it('is recorded as unknown if the new node cannot identify the disk', async () => {
    await exported()
    disk.disk = []
    expect(await imported()).toMatchObject({ outcome: 'imported' })
    expect(volumeRecords.read(there, volume)?.disk).toBeUndefined()
  })
})

describe('a journal of a volume whose server does not respond', () => {
  const opened: string[] = []
  beforeEach(async () => {
    await exported()
    stage.fs.renameSync(FILE, `${FILE}.kept`)
    const { mounts, inodes, daemons } = stage.host
    const { table } = mounts
    mounts.table = () =>
      table()
        .split('\n')
        .map((row) => (row.includes(` ${PLACE} `) ? row.replace(' - memory ', ' - nfs4 ') : row))
        .join('\n')
    daemons.answers = async () => false
    opened.length = 0
    const { openLinkFree } = inodes
    inodes.openLinkFree = (path) => {
      opened.push(path)
      return openLinkFree(path)
    }
  })
  const silent = `directory "${PLACE}" does not respond`
  const untouched = () => expect(opened.filter((path) => path.startsWith(PLACE))).toEqual([])

  it('is exported by volume name, and refused by directory without opening the directory', async () => {
    await expect(exported()).rejects.toThrow(silent)
    expect(stage.fs.existsSync(FILE)).toBe(false)
    untouched()
    const target = { volume }
    const command = { verb: 'journal', action: 'export', target, file: FILE, isForced: false } as const
    expect(await runVerb(stage.session(), command)).toMatchObject({ outcome: 'exported' })
    untouched()
  })

  it('is not imported, neither with the recorded nor with a named directory', async () => {
    stage.fs.renameSync(`${FILE}.kept`, FILE)
    for (const at of [undefined, PLACE]) await expect(imported(at)).rejects.toThrow(silent)
    untouched()
    expect(stage.fs.existsSync(there.config.stateDir)).toBe(false)
  })
})
