import { describe, expect, it } from 'vitest'
import { type MountRecord, mountRecords } from '../../src/state/mount-record.ts'
import { volumeRecords } from '../../src/state/volume-record.ts'
import { memoryStage, type Stage } from '../helpers/stage.ts'
import { groups, listTree, makeTree } from '../helpers/tree.ts'

interface Arranged {
  stage: Stage
  source: string
  record: MountRecord
}

/** A pod's walked volume, as recorded; the test says what becomes of the record. */
async function arrange(restorePending: boolean): Promise<Arranged> {
  const stage = memoryStage()
  const source = `${stage.top}/volumes/data`
  makeTree(stage.fs, source, ['file test 0640 7'])
  await stage.mount('a', { source, ownership: 'walk', 'kubernetes.io/fsGroup': '2000' })
  const record = mountRecords.read(stage, stage.podDirectory('a'))
  if (record?.volume === undefined) throw new Error('no record')
  const volume = volumeRecords.read(stage, record.volume)
  if (volume === undefined) throw new Error('no volume')
  volumeRecords.write(stage, { ...volume, restorePending })
  return { stage, source, record }
}

type Change = (record: MountRecord) => MountRecord | undefined

const AS_IT_IS: Change = (record) => record
const NONE: Change = () => undefined
const INTERRUPTED: Change = (record) => ({ ...record, mounted: undefined })
const EARLIER_BOOT: Change = (record) => ({ ...record, boot: 'boot-0' })
const WITHOUT_GROUP: Change = (record) => ({ ...record, given: { by: 'none' } })
const WITHOUT_VOLUME: Change = (record) => ({ ...record, volume: undefined })

describe('an unmount', () => {
  it.each<[string, Change, boolean, boolean]>([
    ['no record and no pending restore', NONE, false, false],
    ['no record and any pending restore', NONE, true, false],
    ['a record', AS_IT_IS, false, false],
    ['a record of an interrupted call', INTERRUPTED, false, false],
    ['a record of another boot', EARLIER_BOOT, false, false],
    ['a volume that ends with its mount', WITHOUT_VOLUME, false, false],
    ['a pending restore', AS_IT_IS, true, true],
    ['a pending restore, an interrupted call', INTERRUPTED, true, true],
    ['a pending restore, a record of another boot', EARLIER_BOOT, true, true],
    ['a pending restore of a pod without a group', WITHOUT_GROUP, true, true],
    ['a pending restore for a volume that ends with its mount', WITHOUT_VOLUME, true, false],
  ])('with %s detaches first and removes the record last', async (_what, change, restorePending, isRestored) => {
    const { stage, source, record } = await arrange(restorePending)
    const { host, config } = stage
    const file = `${config.stateDir}/mounts/${encodeURIComponent(record.directory)}/record.json`
    const changed = change(record)
    if (changed === undefined) host.files.remove(file)
    else mountRecords.write(stage, changed)
    const actions = stage.world?.actions ?? []
    actions.length = 0

    await stage.unmount('a')

    const at = (action: string) => actions.findIndex((done) => done.startsWith(action))
    expect(stage.layers('a')).toEqual([])
    expect(stage.fs.statSync(record.directory).isDirectory()).toBe(true)
    expect(mountRecords.read(stage, record.directory)).toBeUndefined()
    expect(groups(listTree(stage.fs, source)).test).toBe(isRestored ? 7 : 2000)
    expect(at('detach')).toBeGreaterThanOrEqual(0)
    if (changed !== undefined) expect(at(`rmSync ${file}`)).toBeGreaterThan(at('detach'))
    if (isRestored) {
      expect(at('chown')).toBeGreaterThan(at('detach'))
      expect(at(`rmSync ${file}`)).toBeGreaterThan(at('chown'))
    }
    expect(stage.warnings).toEqual([])
  })
})
