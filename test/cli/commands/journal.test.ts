import { afterEach, beforeEach, expect, it } from 'vitest'
import type { ApplyDocument } from '../../../src/cli/commands/apply.ts'
import { runVerb } from '../../../src/cli/commands/index.ts'
import type { JournalDocument, JournalExportCommand } from '../../../src/cli/commands/journal-export.ts'
import type { JournalImportCommand } from '../../../src/cli/commands/journal-import.ts'
import type { RestoreDocument } from '../../../src/cli/commands/restore.ts'
import type { StatusDocument } from '../../../src/cli/commands/status-document.ts'
import { tryLockRecordDirectory } from '../../../src/state/locks.ts'
import { locateImportDirectory, locateVolumeRecords } from '../../../src/state/record-directories.ts'
import type { Session } from '../../../src/state/session.ts'
import { volumeRecords } from '../../../src/state/volume-record.ts'
import { onEveryStage, type Stage } from '../../helpers/stage.ts'
import { groups, listTree, makeTree, modes, SIX_FILES } from '../../helpers/tree.ts'

const TREE = [...SIX_FILES, 'dir sub 0750 7', 'file sub/suid 4755', 'hard again test6']

onEveryStage('a journal that is moved to another node', (open) => {
  let stage: Stage
  let directory: string
  let file: string
  let volume: string
  let original: object
  /** The other node: the same file systems, a state directory of its own. */
  let there: Session
  beforeEach(async () => {
    stage = open()
    directory = `${stage.top}/volumes/data`
    file = `${stage.top}/data.journal`
    makeTree(stage.fs, directory, TREE)
    there = { ...stage.session(), config: { ...stage.config, stateDir: `${stage.top}/state-b` } }
    original = now()
    volume = await apply()
  })
  afterEach(() => stage.close())

  const now = () => {
    const listed = listTree(stage.fs, directory)
    return { modes: modes(listed), groups: groups(listed) }
  }
  const apply = async (session = stage.session(), group = 2000) => {
    const fsGroup = { groupId: group, access: 'keep', changePolicy: 'Always' } as const
    return ((await runVerb(session, { verb: 'apply', directory, fsGroup })) as ApplyDocument).volume
  }
  const exported = (more: Partial<JournalExportCommand> = {}) =>
    runVerb(stage.session(), {
      verb: 'journal',
      action: 'export',
      target: { volume },
      file,
      isForced: false,
      ...more,
    }) as Promise<JournalDocument>
  const imported = (more: Partial<JournalImportCommand> = {}) =>
    runVerb(there, {
      verb: 'journal',
      action: 'import',
      file,
      at: undefined,
      isDry: false,
      ...more,
    }) as Promise<JournalDocument>
  const restored = async (session = there) =>
    (await runVerb(session, { verb: 'restore', target: { volume }, isDry: false, isForced: false })) as RestoreDocument
  const volumes = async () => ((await runVerb(there, { verb: 'status', metrics: undefined })) as StatusDocument).volumes
  /** Files and their sizes. */
  const state = () =>
    Object.keys(stage.fs.existsSync(there.config.stateDir) ? listTree(stage.fs, there.config.stateDir) : {}).map(
      (path) => [path, stage.fs.statSync(`${there.config.stateDir}/${path}`).size],
    )

  it('an imported journal makes the other node restore the volume like a walk of that node', async () => {
    volumeRecords.write(stage.session(), { ...recordHere(), restorePending: true })
    const recorded = { group: 2000, groupAccess: 'keep', complete: true, left: null, restorePending: true }
    expect(await exported()).toEqual({
      verb: 'journal',
      action: 'export',
      file,
      volume,
      source: directory,
      isDry: false,
      outcome: 'exported',
      refusal: null,
      recorded,
      busy: false,
      bytes: stage.fs.statSync(file).size,
    })
    expect(stage.fs.statSync(file).mode & 0o7777).toBe(0o600)
    expect(await imported()).toMatchObject({ outcome: 'imported', volume, source: directory, recorded })
    expect(await volumes()).toMatchObject([{ volume, ...recorded, source: directory, fault: null, walk: null }])
    expect(await restored()).toMatchObject({ outcome: 'restored', directory })
    expect(now()).toEqual(original)
    expect(stage.fs.readdirSync(`${there.config.stateDir}`)).not.toContain('ownership')
  })

  const recordHere = () => {
    const record = volumeRecords.read(stage.session(), volume)
    if (record === undefined) throw new Error('nothing is recorded')
    return record
  }

  it('journal export finds a journal by directory, and refuses a directory without records', async () => {
    expect(await exported({ target: { directory } })).toMatchObject({ outcome: 'exported', volume })
    stage.fs.mkdirSync(`${stage.top}/volumes/other`)
    const other = { directory: `${stage.top}/volumes/other` }
    await expect(exported({ target: other, file: `${file}-2` })).rejects.toThrow(/^nothing is recorded of ".*other"/)
    await expect(exported({ target: { volume: '1.2-3-4' }, file: `${file}-2` })).rejects.toThrow(
      'nothing is recorded of volume 1.2-3-4',
    )
    expect(stage.fs.existsSync(`${file}-2`)).toBe(false)
  })

  it('journal import finds the current directory of the volume and records that directory', async () => {
    // By a link, which leads nowhere on the other node.
    volumeRecords.write(stage.session(), { ...recordHere(), asked: `${stage.top}/volumes/link` })
    await exported()
    const moved = `${stage.top}/volumes/moved`
    stage.fs.renameSync(directory, moved)
    const nowhere = `the file is of volume ${volume}, which is not found on this node (it was "${directory}", which is no directory`
    await expect(imported()).rejects.toThrow(nowhere)
    makeTree(stage.fs, directory, SIX_FILES)
    await expect(imported()).rejects.toThrow(/\(it was ".*data", which is volume [0-9a-f.-]+ here\)/)
    await expect(imported({ at: directory })).rejects.toThrow(
      new RegExp(`directory ".*data" is volume [0-9a-f.-]+( or [0-9a-f.-]+)?, and the file is of volume ${volume}`),
    )
    expect(state()).toEqual([])
    expect(await imported({ at: moved })).toMatchObject({ outcome: 'imported', source: moved })
    const { asked: _, ...kept } = recordHere()
    expect(volumeRecords.read(there, volume)).toEqual({ ...kept, source: moved })
    directory = moved
    expect(await restored()).toMatchObject({ outcome: 'restored', directory: moved })
    expect(now()).toEqual(original)
  })

  it('a dry run of journal import checks the file and changes nothing', async () => {
    await exported()
    expect(await imported({ isDry: true })).toMatchObject({ outcome: 'would import', refusal: null })
    expect(state()).toEqual([])
    await imported()
    const before = state()
    expect(await imported({ isDry: true })).toMatchObject({ outcome: 'already here' })
    expect(state()).toEqual(before)
  })

  it('journal import accepts the same file twice, and refuses a volume with other recorded changes', async () => {
    await exported()
    await imported()
    expect(await imported()).toMatchObject({ outcome: 'already here', refusal: null })
    await apply(there, 3000)
    const refusal = `other changes of volume ${volume} are on record here: put them back with "modekeep restore ${volume}"`
    await expect(imported()).rejects.toThrow(refusal)
    expect(await imported({ isDry: true })).toMatchObject({
      outcome: 'would import',
      refusal: expect.stringContaining(refusal),
    })
    await restored()
    expect(now()).toEqual(original)
  })

  it('an imported journal has the changes of several walks, and accepts further records', async () => {
    stage.fs.chmodSync(`${directory}/test1`, 0o600)
    await apply(stage.session(), 3000)
    await exported()
    await imported()
    await apply(there, 4000)
    await restored()
    const { modes, groups } = now()
    expect({ groups, modes: { ...modes, test1: '0644' } }).toEqual({ ...original, groups: { ...groups } })
    expect(groups).toMatchObject({ '.': 0, test2: 0, 'sub/suid': 0 })
  })

  it('during a walk, journal export writes an unfinished journal without waiting, and journal import is refused', async () => {
    const walking = tryLockRecordDirectory(stage.session(), locateVolumeRecords(stage.session(), volume))
    expect(await exported()).toMatchObject({ busy: true, recorded: { complete: false } })
    walking?.release()
    using _ = tryLockRecordDirectory(there, locateVolumeRecords(there, volume))
    expect(await imported({ isDry: true })).toMatchObject({ refusal: expect.stringContaining('under way here') })
    await expect(imported()).rejects.toThrow(`a walk or a restore of volume ${volume} is under way here`)
    expect(stage.fs.readdirSync(`${there.config.stateDir}/ownership`)).toEqual([volume])
  }, 20_000)

  it('only one process at a time imports a journal, and that process removes an interrupted import', async () => {
    await exported()
    const other = tryLockRecordDirectory(there, locateImportDirectory(there, volume))
    await expect(imported()).rejects.toThrow(`another import of volume ${volume} is under way`)
    other?.release()
    stage.fs.writeFileSync(`${locateImportDirectory(there, volume).path}/journal.db`, 'half of one')
    expect(await imported()).toMatchObject({ outcome: 'imported' })
    expect(stage.fs.readdirSync(`${there.config.stateDir}/ownership`)).toEqual([volume])
    await restored()
    expect(now()).toEqual(original)
  })

  it('gc removes the files of an interrupted journal import', async () => {
    const other = tryLockRecordDirectory(there, locateImportDirectory(there, volume))
    const gc = async (isDry: boolean) => {
      const document = await runVerb(there, { verb: 'gc', isDry, forget: undefined })
      return 'items' in document ? document.items : undefined
    }
    const item = { kind: 'import', name: volume }
    for (const isDry of [true, false]) expect(await gc(isDry)).toMatchObject([{ ...item, action: 'kept' }])
    other?.release()
    for (const isDry of [true, false]) expect(await gc(isDry)).toMatchObject([{ ...item, action: 'removed' }])
    expect(await gc(false)).toEqual([])
  })

  it('an interrupted journal export leaves no partial file', async () => {
    const ending = new AbortController()
    const { files } = stage.host
    const host = {
      ...stage.host,
      files: {
        ...files,
        create: (path: string, mayReplace: boolean) => {
          const made = files.create(path, mayReplace)
          const write = (bytes: Uint8Array) => {
            made.write(bytes)
            // As a signal, which ends the process then.
            ending.abort()
            throw new Error('ended')
          }
          return { ...made, write }
        },
      },
    }
    const caller = { version: '1.2.3', isTerminal: false, write: async () => {}, interrupted: ending.signal }
    const command = { verb: 'journal', action: 'export', target: { volume }, file, isForced: false } as const
    await expect(runVerb({ ...stage.session(), host }, command, caller)).rejects.toThrow('ended')
    expect(stage.fs.readdirSync(stage.top).filter((name) => /journal|modekeep/.test(name))).toEqual([])
  })

  it('journal export replaces a regular file only with --force, and never a file of another type', async () => {
    stage.fs.writeFileSync(file, 'mine')
    await expect(exported()).rejects.toThrow('is there already: name another file, or replace it with --force')
    expect(stage.fs.readFileSync(file, 'utf8')).toBe('mine')
    expect(await exported({ isForced: true })).toMatchObject({ outcome: 'exported' })
    await expect(exported({ isForced: true, file: directory })).rejects.toThrow('is no regular file')
    await expect(exported({ file: `${stage.top}/none/file` })).rejects.toThrow(/cannot write .*none\/file \(ENOENT/)
    expect(stage.fs.readdirSync(stage.top).filter((name) => name.startsWith('.'))).toEqual([])
  })

  it('journal import refuses a journal that exceeds stateQuota', async () => {
    await exported()
    there.config = { ...there.config, stateQuota: 100 }
    await expect(imported()).rejects.toThrow(/has \d+ bytes, and "stateQuota" of the configuration is 100/)
    expect(state()).toEqual([])
  })

  it('journal export omits a damaged volume record, and the imported journal restores by directory', async () => {
    const path = `${locateVolumeRecords(stage.session(), volume).path}/record.json`
    stage.fs.writeFileSync(path, stage.fs.readFileSync(path, 'utf8').replace('2000', '2001'))
    expect(await exported()).toMatchObject({ recorded: null, source: '' })
    expect(stage.warnings).toEqual([`the record of volume ${volume} is damaged: the journal is exported without it`])
    expect(await imported({ at: directory })).toMatchObject({ outcome: 'imported', recorded: null })
    await runVerb(there, { verb: 'restore', target: { directory }, isDry: false, isForced: false })
    expect(now()).toEqual(original)
  })
})
