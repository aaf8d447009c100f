import { afterEach, beforeEach, expect, it } from 'vitest'
import type { ApplyDocument } from '../../src/cli/commands/apply.ts'
import { runVerb } from '../../src/cli/commands/index.ts'
import type { Lock } from '../../src/kernel/host.ts'
import { listVolumeReservations, reservationRecords, type VolumeReservation } from '../../src/state/process-records.ts'
import type { Session } from '../../src/state/session.ts'
import { onEveryStage, type Stage } from '../helpers/stage.ts'
import { groups, listTree, makeTree } from '../helpers/tree.ts'

onEveryStage('a running call for a volume', (open) => {
  let stage: Stage
  let source: string
  let atWork: Lock | undefined
  beforeEach(() => {
    stage = open()
    source = `${stage.top}/volumes/data`
    makeTree(stage.fs, source, ['file a 0640 5', 'file sub/b 0640 6', 'file sub/deep/c 0640 7'])
    makeTree(stage.fs, `${stage.top}/volumes/other`, ['file a 0640 5'])
  })
  afterEach(() => {
    die()
    stage.close()
  })

  const asked = (path: string, group: number) => ({
    source: `${stage.top}/volumes/${path}`,
    ownership: 'walk',
    restoreOnUnmount: 'true',
    'kubernetes.io/fsGroup': String(group),
  })
  const groupsNow = () => groups(listTree(stage.fs, source))
  const session = (): Session => ({ host: stage.host, config: stage.config, note: () => {}, warn: () => {} })

  const SUB = 'ab-5-6'

  /** As another process in mid-walk of `data/sub` looks. */
  function workOnSub(more: Partial<VolumeReservation>): void {
    const reservation = { volume: SUB, source: `${source}/sub`, group: 3000, pod: 'shop/web', directory: '/pods/web/v' }
    reservationRecords.write(stage, { ...reservation, ...more })
    stage.host.files.makeDirectory(`${stage.config.stateDir}/ownership/${SUB}`)
    atWork = stage.host.tryLock(`${stage.config.stateDir}/ownership/${SUB}/lock`)
    expect(atWork).toBeDefined()
  }

  function die(): void {
    atWork?.release()
    atWork = undefined
  }

  /** Lets a call that would not wait go on to its end. */
  const aWhile = () => new Promise((resolve) => setTimeout(resolve, 300))

  it.each(['data', 'data/sub/deep'])(
    'refuses a mount of %s, around or in its volume, with another group, and the message names the call',
    async (path) => {
      workOnSub({})
      const before = groupsNow()
      await expect(stage.mount('a', asked(path, 2000))).rejects.toThrow(
        /belongs to group 3000 while pod shop\/web uses .*\/data\/sub \(\/pods\/web\/v\)/,
      )
      expect(groupsNow()).toEqual(before)
      expect(stage.layers('a')).toEqual([])
    },
  )

  it('does not block other volumes, or mounts of this one without a walk', async () => {
    workOnSub({})
    await stage.mount('a', asked('other', 2000))
    await stage.mount('b', { source })
    expect(stage.layers('a')).toHaveLength(1)
    expect(stage.layers('b')).toHaveLength(1)
  })

  it.each<[string, Partial<VolumeReservation>]>([
    ['a mount with the same group', { group: 2000 }],
    ['an apply by hand', { pod: undefined, directory: undefined }],
    ['a restore', { group: undefined, pod: undefined, directory: undefined }],
  ])("for %s delays a mount of a volume around its own, which walks after the running call's end", async (_, more) => {
    workOnSub(more)
    const before = groupsNow()
    let done = false
    const mounted = stage.mount('a', asked('data', 2000)).then(() => {
      done = true
    })
    await aWhile()
    expect(done).toBe(false)
    expect(groupsNow()).toEqual(before)
    die()
    await mounted
    expect(stage.layers('a')).toHaveLength(1)
    expect(new Set(Object.values(groupsNow()))).toEqual(new Set([2000]))
  })

  it('does not block other calls while it waits', async () => {
    workOnSub({ group: 2000 })
    const mounted = stage.mount('a', asked('data', 2000))
    await aWhile()
    await stage.mount('b', asked('other', 3000))
    die()
    await mounted
  })

  it('keeps the records for the pending restore of a volume around its own until its own mount is unmounted', async () => {
    await stage.mount('a', asked('data', 2000))
    const walked = groupsNow()
    workOnSub({ group: 2000 })
    await stage.unmount('a')
    expect(stage.layers('a')).toEqual([])
    expect(stage.noted.restore).toBe('pending until /pods/web/v is unmounted and the volume is unmounted again')
    expect(groupsNow()).toEqual(walked)
    die()
    await stage.mount('a', asked('data', 2000))
    await stage.unmount('a')
    expect(groupsNow()).toEqual({ '.': 0, a: 5, sub: 0, 'sub/b': 6, 'sub/deep': 0, 'sub/deep/c': 7 })
  })

  it('for a mount causes the refusal of manual commands, which names the pod', async () => {
    const fsGroup = { groupId: 2000, access: 'keep', changePolicy: 'Always' } as const
    await runVerb(session(), { verb: 'apply', directory: source, fsGroup })
    workOnSub({})
    await expect(runVerb(session(), { verb: 'apply', directory: source, fsGroup })).rejects.toThrow(
      /pod shop\/web uses/,
    )
    await expect(
      runVerb(session(), { verb: 'restore', target: { directory: source }, isDry: false, isForced: false }),
    ).rejects.toThrow(/pod shop\/web uses/)
    expect(await runVerb(session(), { verb: 'plan', directory: source, fsGroup })).toMatchObject({
      refusal: expect.stringContaining('pod shop/web uses'),
    })
  })

  it('that has crashed blocks nothing despite its leftovers', async () => {
    workOnSub({})
    die()
    await stage.mount('a', asked('data', 2000))
    expect(new Set(Object.values(groupsNow()))).toEqual(new Set([2000]))
    expect(stage.fs.readdirSync(`${stage.config.stateDir}/reservations`)).toEqual([])
  })

  it.each(['{"format":2}', '{"volume'])(
    'with an unreadable reservation (%s) keeps others from walking',
    async (text) => {
      workOnSub({})
      stage.host.files.replace(`${stage.config.stateDir}/reservations/${SUB}.json`, text)
      await expect(stage.mount('a', asked('data', 3000))).rejects.toThrow(/the record .*\/reservations\/ab-5-6.json/)
      expect(stage.layers('a')).toEqual([])
      expect(listVolumeReservations(stage)).toHaveLength(1)
      die()
      await stage.mount('a', asked('data', 3000))
    },
  )

  it('leaves no reservation after its end or refusal', async () => {
    await stage.mount('a', asked('data', 2000))
    await expect(stage.mount('b', asked('data', 3000))).rejects.toThrow(/belongs to group 2000/)
    await stage.unmount('a')
    const { volume } = (await runVerb(session(), {
      verb: 'apply',
      directory: source,
      fsGroup: { groupId: 2000, access: 'keep', changePolicy: 'Always' },
    })) as ApplyDocument
    const place = `${stage.config.stateDir}/ownership/${volume}`
    expect(stage.fs.readdirSync(place)).toContain('journal.db')
    expect(stage.fs.readdirSync(`${stage.config.stateDir}/reservations`)).toEqual([])
    await runVerb(session(), { verb: 'restore', target: { directory: source }, isDry: false, isForced: false })
    expect(stage.fs.existsSync(place)).toBe(false)
  })

  it('reserves the old and the new volume during a replacement, and only the old one if the new one is refused', async () => {
    await stage.mount('a', asked('data', 2000))
    await stage.mount('b', asked('other', 3000))
    await expect(stage.mount('a', asked('other', 2000))).rejects.toThrow(/belongs to group 3000/)
    await expect(stage.mount('c', asked('data', 3000))).rejects.toThrow(/belongs to group 2000/)
    await expect(stage.mount('c', asked('data/sub', 3000))).rejects.toThrow(/belongs to group 2000/)
    await stage.unmount('b')
    await stage.mount('a', asked('other', 2000))
    await stage.mount('c', asked('data/sub', 3000))
    expect(groupsNow()).toMatchObject({ '.': 2000, sub: 3000, 'sub/deep/c': 3000 })
  })

  it('for a tmpfs with any group does not reserve other volumes', async () => {
    await stage.mount('t', { 'kubernetes.io/fsType': 'tmpfs', ownership: 'walk', 'kubernetes.io/fsGroup': '3000' })
    await stage.mount('a', asked('data', 2000))
    await stage.unmount('a')
    expect(groupsNow()).toMatchObject({ '.': 0, a: 5, 'sub/b': 6 })
  })
})
