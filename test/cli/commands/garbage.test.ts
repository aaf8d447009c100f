import { afterEach, beforeEach, expect, it } from 'vitest'
import type { GcDocument } from '../../../src/cli/commands/gc.ts'
import { runVerb } from '../../../src/cli/commands/index.ts'
import type { RestoreDocument } from '../../../src/cli/commands/restore.ts'
import { readSelectedStatus } from '../../../src/cli/commands/status.ts'
import { reservationRecords } from '../../../src/state/process-records.ts'
import { listVolumesWithRecords } from '../../../src/state/record-directories.ts'
import type { Session } from '../../../src/state/session.ts'
import { onEveryStage, onKernelStages, type Stage } from '../../helpers/stage.ts'
import { groups, listTree, makeTree, SIX_FILES } from '../../helpers/tree.ts'

/** A source with a part behind a link, which is exchanged as git-sync and atomic writers do. */
function arrange(open: () => Stage) {
  let stage: Stage
  let source: string
  beforeEach(() => {
    stage = open()
    source = `${stage.top}/volumes/data`
    makeTree(stage.fs, `${source}/..one/part`, SIX_FILES)
    stage.fs.symlinkSync('..one/part', `${source}/part`)
  })
  afterEach(() => stage.close())

  const session = (): Session => stage.session()
  const gc = (more: { isDry?: boolean; forget?: string } = {}) =>
    runVerb(session(), { verb: 'gc', isDry: false, forget: undefined, ...more }) as Promise<GcDocument>
  const restore = (volume: string, isDry = false) =>
    runVerb(session(), { verb: 'restore', target: { volume }, isDry, isForced: false }) as Promise<RestoreDocument>
  const walked = (more: Record<string, string> = {}) => ({
    source,
    subPath: 'part',
    ownership: 'walk',
    'kubernetes.io/fsGroup': '2000',
    ...more,
  })
  const state = () => {
    const list = (place: string): string[] =>
      stage.fs.existsSync(place) ? (stage.fs.readdirSync(place, { recursive: true }) as string[]) : []
    // SQLite's own files come and go with each reader.
    return list(stage.config.stateDir)
      .filter((name) => !/-(wal|shm)$/.test(name))
      .sort()
  }
  const volumes = () => listVolumesWithRecords(stage)
  const items = async (...args: Parameters<typeof gc>) =>
    (await gc(...args)).items.map(({ kind, action, reason }) => `${kind} ${action}: ${reason}`)
  const only = () => {
    const [volume = '', ...more] = volumes()
    expect(more).toEqual([])
    return volume
  }
  const flip = () => {
    makeTree(stage.fs, `${source}/..two/part`, SIX_FILES)
    stage.fs.unlinkSync(`${source}/part`)
    stage.fs.symlinkSync('..two/part', `${source}/part`)
    stage.fs.rmSync(`${source}/..one`, { recursive: true })
  }
  return {
    stage: () => stage,
    source: () => source,
    session,
    gc,
    restore,
    walked,
    state,
    volumes,
    items,
    only,
    flip,
  }
}

onEveryStage('gc', (open) => {
  const { stage, source, session, gc, restore, walked, state, volumes, items, only } = arrange(open)

  it('gc removes nothing if nothing is recorded, and creates no state directory', async () => {
    expect((await gc()).items).toEqual([])
    expect(stage().fs.existsSync(stage().config.stateDir)).toBe(false)
  })

  it('gc keeps records of mounted volumes and of volumes that can still be restored', async () => {
    await stage().mount('a', walked())
    const directory = stage().podDirectory('a')
    expect(await items()).toEqual(['mount record kept: it is mounted', `volume kept: it is mounted at ${directory}`])
    await stage().unmount('a')
    const before = state()
    expect(await items()).toEqual([
      expect.stringMatching(/^volume kept: .*\/\.\.one\/part was walked for group 2000: /),
    ])
    expect(state()).toEqual(before)
    expect(await restore(only())).toMatchObject({ outcome: 'restored', report: { changed: 7 } })
  })

  it('gc removes the records that a crashed call left of a completely restored volume', async () => {
    await stage().mount('a', walked())
    await stage().unmount('a')
    const volume = only()
    await restore(volume)
    expect(volumes()).toEqual([])
    stage().fs.mkdirSync(`${stage().config.stateDir}/ownership/${volume}`, { recursive: true })
    expect(await items({ isDry: true })).toEqual(['volume removed: nothing is recorded of it any more'])
    expect(volumes()).toEqual([volume])
    expect(await items()).toEqual(['volume removed: nothing is recorded of it any more'])
    expect(volumes()).toEqual([])
  })

  it('gc removes the record of a pod that was deleted without an unmount, and runs the pending restore', async () => {
    const before = groups(listTree(stage().fs, `${source()}/..one/part`))
    await stage().mount('a', walked({ restoreOnUnmount: 'true' }))
    expect(groups(listTree(stage().fs, `${source()}/..one/part`))).not.toEqual(before)
    stage().reboot()
    stage().fs.rmSync(`${stage().top}/pods/a`, { recursive: true })
    expect(await items({ isDry: true })).toContain('mount record removed: its directory is gone')
    expect(await items()).toEqual(['mount record removed: its directory is gone'])
    expect(volumes()).toEqual([])
    expect(groups(listTree(stage().fs, `${source()}/..one/part`))).toEqual(before)
    expect(state().filter((name) => name.startsWith('mounts/'))).toEqual([])
  })

  it('gc --forget refuses a volume that exists, is in use, or is unknown', async () => {
    await stage().mount('a', walked())
    const volume = only()
    await expect(gc({ forget: volume })).rejects.toThrow(`is at ${source()}/..one/part`)
    await expect(gc({ forget: '1.2-3-4' })).rejects.toThrow('nothing is recorded of volume 1.2-3-4')
    expect(volumes()).toEqual([volume])
  })

  it('gc keeps a volume that was moved away without a link, because the volume may return', async () => {
    await stage().mount('a', { ...walked(), subPath: '..one/part' })
    await stage().unmount('a')
    const volume = only()
    stage().fs.renameSync(`${source()}/..one`, `${source()}/elsewhere`)
    expect(await items()).toEqual([expect.stringMatching(/^volume kept: .* is missing: .* --forget /)])
    stage().fs.renameSync(`${source()}/elsewhere`, `${source()}/..one`)
    expect(await restore(volume)).toMatchObject({ outcome: 'restored' })
  })

  it('gc removes locks and reservations of crashed calls, and none of a running call', async () => {
    await stage().mount('a', walked())
    await stage().unmount('a')
    const volume = only()
    const place = `${stage().config.stateDir}/ownership/${volume}`
    reservationRecords.write(stage(), { volume, source: source() })
    stage().fs.mkdirSync(`${stage().config.stateDir}/mounts/%2Fgone`, { recursive: true })
    stage().fs.writeFileSync(`${stage().config.stateDir}/mounts/%2Fgone/lock`, '')
    const lock = stage().host.tryLock(`${place}/lock`)
    expect(await items({ isDry: true })).toEqual([
      'lock removed: an interrupted call left it',
      'volume kept: a call is at work on it',
    ])
    lock?.release()
    const before = state()
    expect(await items({ isDry: true })).toContain('reservation removed: an interrupted call left it')
    expect(state()).toEqual(before)
    expect(await items()).toEqual([
      'lock removed: an interrupted call left it',
      'reservation removed: an interrupted call left it',
      expect.stringMatching(/^volume kept: /),
    ])
    expect(stage().fs.existsSync(`${stage().config.stateDir}/reservations/${volume}.json`)).toBe(false)
    expect(stage().fs.existsSync(`${stage().config.stateDir}/mounts/%2Fgone`)).toBe(false)
  })

  it('gc removes a reservation of a volume without other records', async () => {
    reservationRecords.write(stage(), { volume: '1-2-3', source: source() })
    const gone = ['volume removed: nothing is recorded of it any more']
    expect(await items({ isDry: true })).toEqual(gone)
    expect(await items()).toEqual(gone)
    expect(await items()).toEqual([])
    expect(stage().host.files.list(`${stage().config.stateDir}/reservations`)).toEqual([])
  })

  it('status shows each volume and whether its restore is pending', async () => {
    await stage().mount('a', walked({ restoreOnUnmount: 'true' }))
    const about = { source: `${source()}/..one/part`, group: 2000, groupAccess: 'keep', complete: true, walk: null }
    expect(await readSelectedStatus(session())).toMatchObject({
      mounts: [{ volume: only() }],
      volumes: [{ volume: only(), ...about, restorePending: true, mounts: 1 }],
    })
  })
})

// In memory a journal is no file, and no inode lives on while its path is gone.
onKernelStages('gc', (open) => {
  const { stage, restore, walked, volumes, items, only, flip } = arrange(open)

  it('gc removes the journal of a subPath that an atomic update has deleted, and no other', async () => {
    await stage().mount('a', walked())
    const volume = only()
    flip()
    await stage().heal()
    expect(volumes()).toHaveLength(2)
    await stage().unmount('a')
    expect(await items()).toEqual([
      expect.stringMatching(
        /^volume (removed: .* was deleted when the symlink that led to it was swapped|kept: .*..two\/part was walked)/,
      ),
      expect.stringMatching(
        /^volume (removed: .* was deleted when the symlink that led to it was swapped|kept: .*..two\/part was walked)/,
      ),
    ])
    expect(volumes()).not.toContain(volume)
    expect(only()).not.toBe(volume)
  })

  it('gc keeps a deleted volume with a pending restore until gc --forget names the volume', async () => {
    await stage().mount('a', walked({ restoreOnUnmount: 'true' }))
    const volume = only()
    flip()
    await stage().heal()
    await stage().unmount('a')
    const kept = `"modekeep gc --forget ${volume}" removes its record`
    expect(await items()).toContainEqual(expect.stringContaining(kept))
    expect(volumes()).toContain(volume)
    await expect(restore(volume)).rejects.toThrow(/cannot be found: .*\/\.\.one\/part is missing/)
    expect(await items({ forget: volume, isDry: true })).toContain('volume removed: its record is removed as requested')
    expect(await items({ forget: volume })).toContain('volume removed: its record is removed as requested')
    expect(volumes()).not.toContain(volume)
  })

  it('gc keeps and reports an unreadable journal', async () => {
    await stage().mount('a', walked())
    await stage().unmount('a')
    stage().fs.writeFileSync(`${stage().config.stateDir}/ownership/${only()}/journal.db`, 'x'.repeat(5000))
    expect(await items()).toEqual([expect.stringMatching(/^volume kept: the ownership journal .* cannot be used/)])
  })
})
