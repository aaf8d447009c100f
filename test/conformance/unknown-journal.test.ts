import type { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, expect, it } from 'vitest'
import type { GcDocument } from '../../src/cli/commands/gc.ts'
import { runVerb } from '../../src/cli/commands/index.ts'
import type { StatusDocument } from '../../src/cli/commands/status-document.ts'
import { formatStatus } from '../../src/cli/commands/status-text.ts'
import { checkRecordedVolumes } from '../../src/cli/doctor/records.ts'
import { listVolumesWithRecords } from '../../src/state/record-directories.ts'
import { splitLine } from '../helpers/line.ts'
import { onEveryStage, type Stage } from '../helpers/stage.ts'
import { listTree, makeTree, SIX_FILES } from '../helpers/tree.ts'

onEveryStage('a journal of an unknown format', (open) => {
  let stage: Stage
  let source: string
  let path: string
  beforeEach(async () => {
    stage = open()
    source = `${stage.top}/volumes/data`
    makeTree(stage.fs, source, SIX_FILES)
    await stage.mount('a', { ...asked(), restoreOnUnmount: 'true' })
    const [volume = ''] = listVolumesWithRecords(stage)
    path = `${stage.config.stateDir}/ownership/${volume}/journal.db`
    database((journal) => journal.exec('UPDATE journal SET format = 5'))
  })
  afterEach(() => stage.close())

  function database<T>(use: (journal: DatabaseSync) => T): T {
    const journal = stage.host.openDatabase(path)
    try {
      return use(journal)
    } finally {
      journal.close()
    }
  }
  const held = () =>
    database((journal) =>
      ['journal', 'log', 'acls', 'unsettled'].map((table) => journal.prepare(`SELECT * FROM ${table}`).all()),
    )

  const asked = () => ({ source, ownership: 'walk', 'kubernetes.io/fsGroup': '2000' })
  const sentence = () =>
    `the ownership journal ${path} cannot be used (its format is 5, this version reads 4), so nothing more is changed: ` +
    'install the version of modekeep that made it, or give up what could be restored by moving its directory away'
  const now = () => listTree(stage.fs, source)

  it('lets the pod unmount with a warning; the restore stays pending, and the journal is unchanged', async () => {
    const [before, tree] = [held(), now()]
    await stage.unmount('a')
    expect(stage.warnings.join('\n')).toContain(sentence())
    expect(stage.layers('a')).toEqual([])
    expect(held()).toEqual(before)
    expect(now()).toEqual(tree)
    const { volumes } = (await runVerb(stage.session(), { verb: 'status', metrics: undefined })) as StatusDocument
    expect(volumes).toMatchObject([{ restorePending: true }])
  })

  it('makes every call fail that needs it, and the volume is unchanged', async () => {
    await stage.unmount('a')
    const [before, tree] = [held(), now()]
    const fsGroup = { groupId: 2000, access: 'keep', changePolicy: 'Always' } as const
    const failing = [
      () => stage.mount('a', { ...asked(), fsGroupChangePolicy: 'Always' }),
      () => runVerb(stage.session(), { verb: 'plan', directory: source, fsGroup }),
      () => runVerb(stage.session(), { verb: 'apply', directory: source, fsGroup }),
      () => runVerb(stage.session(), { verb: 'restore', target: { directory: source }, isDry: false, isForced: true }),
      () => runVerb(stage.session(), { verb: 'restore', target: { directory: source }, isDry: true, isForced: false }),
    ]
    for (const call of failing) await expect(call()).rejects.toThrow(sentence())
    expect(held()).toEqual(before)
    expect(now()).toEqual(tree)
  })

  it('is named by status and doctor, and kept by gc', async () => {
    await stage.unmount('a')
    const before = held()
    const document = (await runVerb(stage.session(), { verb: 'status', metrics: undefined })) as StatusDocument
    expect(document.volumes).toMatchObject([{ fault: sentence() }])
    expect(formatStatus(document, 0).map((line) => splitLine(line).text)).toContain(`  ${sentence()}`)
    expect(await Array.fromAsync(checkRecordedVolumes(stage.session()))).toContainEqual(
      expect.objectContaining({ level: 'fault', text: sentence() }),
    )
    const { items } = (await runVerb(stage.session(), { verb: 'gc', isDry: false, forget: undefined })) as GcDocument
    expect(items).toMatchObject([{ kind: 'volume', action: 'kept' }])
    expect(held()).toEqual(before)
  })
})
