import { afterEach, beforeEach, expect, it } from 'vitest'
import { readSelectedStatus } from '../../src/cli/commands/status.ts'
import { checkRecordedMounts, checkRecordedVolumes } from '../../src/cli/doctor/records.ts'
import { restoreNodeDirectory } from '../../src/fsgroup/volume-by-hand.ts'
import { collectGarbage } from '../../src/repair/garbage.ts'
import { onEveryStage, type Stage } from '../helpers/stage.ts'
import { groups, listTree, makeTree } from '../helpers/tree.ts'

onEveryStage('an unreadable record', (open) => {
  let stage: Stage
  let asked: Record<string, string>
  let mountRecord: string
  beforeEach(async () => {
    stage = open()
    const source = `${stage.top}/volumes/data`
    makeTree(stage.fs, source, ['file first 0644 7'])
    asked = { source, ownership: 'walk', restoreOnUnmount: 'true', 'kubernetes.io/fsGroup': '2000' }
    await stage.mount('a', asked)
    mountRecord = `${stage.config.stateDir}/mounts/${encodeURIComponent(stage.podDirectory('a'))}/record.json`
  })
  afterEach(() => stage.close())

  const volumeRecord = () => {
    const place = `${stage.config.stateDir}/ownership`
    return `${place}/${stage.fs.readdirSync(place)[0]}/record.json`
  }
  const FUTURE = '{"format":3,"what":"a later version knows"}\n'
  const DAMAGED = '{"format":2,"volume'
  const put = (path: string, text: string) => stage.fs.writeFileSync(path, text)
  const content = (path: string) => stage.fs.readFileSync(path, 'utf8')
  const groupsNow = () => groups(listTree(stage.fs, asked.source ?? ''))

  it.each([
    ['of another format', FUTURE],
    ['that is damaged', DAMAGED],
  ])('%s, of a mount, is kept by every call, and the pod can unmount', async (what, text) => {
    put(mountRecord, text)
    expect(await stage.heal()).toEqual([
      {
        directory: stage.podDirectory('a'),
        pod: '',
        state: 'unknown',
        action: 'none',
        reason: expect.stringContaining(`the record ${mountRecord}`),
        code: what === 'that is damaged' ? 'record-damaged' : 'format-unknown',
      },
    ])
    expect(stage.layers('a')).toHaveLength(1)
    stage.warnings.length = 0
    await stage.unmount('a')
    expect(stage.noted.decision).toBe('unmount')
    expect(stage.warnings).toEqual([expect.stringContaining(`unmounting anyway: the record ${mountRecord}`)])
    expect(stage.layers('a')).toEqual([])
    const items = await collectGarbage(stage.session(), { isDry: false, forget: undefined })
    expect(items).toContainEqual({
      kind: 'mount record',
      name: stage.podDirectory('a'),
      action: 'kept',
      reason: expect.stringContaining(mountRecord),
    })
    stage.reboot()
    await stage.mount('b', { source: asked.source ?? '' })
    expect(content(mountRecord)).toBe(text)
  })

  it.each([
    ['of another format', FUTURE],
    ['that is damaged', DAMAGED],
  ])('%s, of a volume, is kept by every call, and the pod can unmount', async (_what, text) => {
    const path = volumeRecord()
    put(path, text)
    await stage.heal()
    stage.warnings.length = 0
    await stage.unmount('a')
    expect(stage.warnings).toEqual([
      expect.stringContaining(`volume not restored, tried again at its next unmount: the record ${path}`),
    ])
    expect(stage.layers('a')).toEqual([])
    expect(groupsNow()).toEqual({ '.': 2000, first: 2000 })
    const items = await collectGarbage(stage.session(), { isDry: false, forget: undefined })
    expect(items).toContainEqual(expect.objectContaining({ kind: 'volume', action: 'kept' }))
    stage.reboot()
    await stage.mount('b', { source: asked.source ?? '' })
    expect(content(path)).toBe(text)
  })

  it.each([
    ['of another format', FUTURE],
    ['that is damaged', DAMAGED],
  ])('%s is named by status and doctor', async (_what, text) => {
    const paths = [mountRecord, volumeRecord()]
    for (const path of paths) put(path, text)
    const { unreadable, volumes } = await readSelectedStatus(stage.session())
    const told = [...unreadable, ...volumes].map(({ fault }) => fault)
    expect(told).toEqual(paths.map((path) => expect.stringContaining(path)))
    const checks = [checkRecordedMounts(stage.session()), checkRecordedVolumes(stage.session())]
    const found = (await Promise.all(checks.map((check) => Array.fromAsync(check)))).flat()
    const faults = found.filter(({ level }) => level === 'fault').map((finding) => finding.text)
    expect(faults).toEqual([expect.stringContaining(mountRecord), expect.stringMatching(/record/)])
    expect(paths.map(content)).toEqual([text, text])
  })

  it('of another format makes the mount fail with a message for the operator', async () => {
    put(mountRecord, FUTURE)
    await expect(stage.mount('a', asked)).rejects.toThrow(
      `the record ${mountRecord} cannot be used (its format is 3, this version reads 2): install the version of modekeep that made it`,
    )
    expect(stage.layers('a')).toHaveLength(1)
    expect(content(mountRecord)).toBe(FUTURE)
  })

  it('of a volume that is damaged makes a mapping fail, and ownership "auto" walks', async () => {
    put(volumeRecord(), DAMAGED)
    const { restoreOnUnmount: _, ...same } = asked
    const others = { ...same, 'kubernetes.io/fsGroup': '3000' }
    await stage.unmount('a')
    await expect(stage.mount('b', { ...others, ownership: 'idmap' })).rejects.toThrow(/was not finished/)
    await stage.mount('b', { ...others, ownership: 'auto' })
    expect(groupsNow()).toEqual({ '.': 3000, first: 3000 })
  })

  it('of another format, of a volume, makes a mount fail that would walk or map', async () => {
    const path = volumeRecord()
    put(path, FUTURE)
    for (const ownership of ['walk', 'idmap', 'auto']) {
      const { restoreOnUnmount: _, ...others } = asked
      await expect(stage.mount('b', { ...others, ownership })).rejects.toThrow(`the record ${path} cannot be used`)
    }
    expect(content(path)).toBe(FUTURE)
    await stage.mount('c', { source: asked.source ?? '' })
  })

  it.each([
    ['of another format', FUTURE],
    ['that is damaged', DAMAGED],
  ])('%s keeps other groups from the mounted volume, as its group is unknown', async (_what, text) => {
    put(mountRecord, text)
    await expect(stage.mount('b', asked)).rejects.toThrow(`the record ${mountRecord}`)
    makeTree(stage.fs, `${stage.top}/volumes/elsewhere`, ['file other 0644 7'])
    await stage.mount('b', { ...asked, source: `${stage.top}/volumes/elsewhere` })
    await stage.unmount('a')
    await stage.mount('c', { ...asked, 'kubernetes.io/fsGroup': '3000' })
    expect(groupsNow()).toEqual({ '.': 3000, first: 3000 })
  })

  it.each([
    ['of another format', FUTURE],
    ['that is damaged', DAMAGED],
  ])('%s keeps the group of its pod: no other unmount restores the volume', async (_what, text) => {
    await stage.mount('b', asked)
    put(mountRecord, text)
    stage.warnings.length = 0
    await stage.unmount('b')
    expect(groupsNow()).toEqual({ '.': 2000, first: 2000 })
    expect(stage.warnings).toEqual([
      expect.stringContaining(`volume not restored, tried again at its next unmount: the record ${mountRecord}`),
    ])
    await expect(stage.byHand(asked.source ?? '', restoreNodeDirectory)).rejects.toThrow(`the record ${mountRecord}`)
    await stage.unmount('a')
    await stage.mount('c', asked)
    await stage.unmount('c')
    expect(groupsNow().first).toBe(7)
  })

  it.each([
    ['of another format', FUTURE],
    ['that is damaged', DAMAGED],
  ])('%s, of a mount, makes gc --forget refuse a volume that the mount may need', async (_what, text) => {
    const volume = volumeRecord().split('/').at(-2)
    put(mountRecord, text)
    stage.fs.renameSync(asked.source ?? '', `${asked.source}-away`)
    const items = await collectGarbage(stage.session(), { isDry: false, forget: volume })
    expect(items).toContainEqual({
      kind: 'volume',
      name: volume,
      action: 'kept',
      reason: expect.stringContaining(`a mount may need it: the record ${mountRecord}`),
      code: 'records-kept',
    })
  })

  it('of another format is not removed by gc --forget', async () => {
    const path = volumeRecord()
    const volume = path.split('/').at(-2)
    await stage.unmount('a')
    await stage.mount('a', { ...asked, restoreOnUnmount: 'false' })
    await stage.unmount('a')
    put(path, FUTURE)
    stage.fs.renameSync(asked.source ?? '', `${asked.source}-away`)
    const items = await collectGarbage(stage.session(), { isDry: false, forget: volume })
    expect(items).toEqual([expect.objectContaining({ kind: 'volume', action: 'kept' })])
    expect(content(path)).toBe(FUTURE)
  })
})
