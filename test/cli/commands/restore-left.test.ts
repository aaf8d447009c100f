import { execFileSync } from 'node:child_process'
import { afterEach, beforeEach, expect, it } from 'vitest'
import type { ApplyDocument } from '../../../src/cli/commands/apply.ts'
import type { GcDocument } from '../../../src/cli/commands/gc.ts'
import { runVerb } from '../../../src/cli/commands/index.ts'
import type { RestoreDocument } from '../../../src/cli/commands/restore.ts'
import type { StatusDocument } from '../../../src/cli/commands/status-document.ts'
import { requireProgram } from '../../helpers/needs.ts'
import { onEveryStage, onKernelStages, type Stage } from '../../helpers/stage.ts'
import { groups, listTree, makeTree, SIX_FILES } from '../../helpers/tree.ts'

onEveryStage('a restore that skips inodes that users changed', (open) => {
  let stage: Stage
  let directory: string
  let volume: string
  beforeEach(() => {
    stage = open()
    directory = `${stage.top}/volumes/data`
    makeTree(stage.fs, directory, [...SIX_FILES])
  })
  afterEach(() => stage.close())

  const apply = async () => {
    const fsGroup = { groupId: 2000, access: 'keep', changePolicy: 'Always' } as const
    return ((await runVerb(stage.session(), { verb: 'apply', directory, fsGroup })) as ApplyDocument).volume
  }
  const restore = (isForced = false) =>
    runVerb(stage.session(), {
      verb: 'restore',
      target: { volume },
      isDry: false,
      isForced,
    }) as Promise<RestoreDocument>
  const gc = async (forget?: string) =>
    ((await runVerb(stage.session(), { verb: 'gc', isDry: false, forget })) as GcDocument).items
  const volumes = async () =>
    ((await runVerb(stage.session(), { verb: 'status', metrics: undefined })) as StatusDocument).volumes
  const groupsNow = () => groups(listTree(stage.fs, directory))

  it('a restore that skips changed inodes keeps the remaining records and prints the next step, and --force completes it', async () => {
    volume = await apply()
    stage.fs.chmodSync(`${directory}/test1`, 0o600)
    for (const changed of [6, 0]) {
      const done = await restore()
      expect(done).toMatchObject({ outcome: 'partly restored', report: { changed } })
      expect(done.next).toMatch(`"modekeep restore ${volume} --force" puts them back too`)
      expect(await volumes()).toMatchObject([{ volume, source: directory, left: 1, restorePending: false }])
      expect(await gc()).toMatchObject([{ action: 'kept', reason: expect.stringContaining(done.next ?? '-') }])
    }
    expect(await restore(true)).toMatchObject({ outcome: 'restored', next: null, report: { changed: 1 } })
    expect(groupsNow()).toMatchObject({ test1: 0, test2: 0 })
    await gc()
    expect(await volumes()).toEqual([])
  })

  it("gc --forget removes the remaining records of a partial restore and keeps the users' changes", async () => {
    volume = await apply()
    await expect(gc(volume)).rejects.toThrow(`put it back with "modekeep restore ${volume}"`)
    stage.fs.chmodSync(`${directory}/test1`, 0o600)
    await restore()
    expect(await gc(volume)).toMatchObject([{ name: volume, action: 'removed' }])
    expect(await volumes()).toEqual([])
    expect(groupsNow()).toMatchObject({ test1: 2000, test2: 0 })
  })

  it('a partial restore at an unmount delays neither that unmount nor the next pod, which walks and unmounts as the first pod did', async () => {
    const asked = { source: directory, ownership: 'walk', restoreOnUnmount: 'true', 'kubernetes.io/fsGroup': '2000' }
    for (let pod = 0; pod < 2; pod++) {
      await stage.mount('a', asked)
      expect(groupsNow()).toMatchObject({ test1: 2000, test2: 2000 })
      expect(await volumes()).toMatchObject([{ left: null, restorePending: true, complete: true }])
      stage.fs.chmodSync(`${directory}/test1`, 0o600)
      await stage.unmount('a')
      expect(groupsNow()).toMatchObject({ test1: 2000, test2: 0 })
      expect(await volumes()).toMatchObject([{ source: directory, left: 1, restorePending: false, complete: false }])
    }
  })

  it('a partly restored volume permits an id mapping like a volume that was never walked', async () => {
    volume = await apply()
    stage.fs.chmodSync(`${directory}/test1`, 0o600)
    await restore()
    await stage.mount('a', { source: directory, ownership: 'idmap', 'kubernetes.io/fsGroup': '3000' })
    expect(stage.layers('a')).toHaveLength(1)
  })

  it('a restore prints no warning for deleted inodes, and gc removes their records', async () => {
    volume = await apply()
    stage.fs.rmSync(`${directory}/test1`)
    expect(await restore()).toMatchObject({ outcome: 'restored', next: null })
    expect(await volumes()).toMatchObject([{ source: directory, left: 0 }])
    expect(await gc()).toMatchObject([{ name: volume, action: 'removed' }])
    expect(await volumes()).toEqual([])
  })
})

onKernelStages('a restore that the kernel rejects for one inode', (open) => {
  it('a restore that the kernel rejects for one inode is unfinished, and prints only the remedy for that reason', async () => {
    const stage = open()
    const directory = `${stage.top}/volumes/data`
    makeTree(stage.fs, directory, [...SIX_FILES])
    const fsGroup = { groupId: 2000, access: 'keep', changePolicy: 'Always' } as const
    const chattr = (sign: string) => execFileSync(requireProgram('chattr'), [`${sign}i`, `${directory}/test1`])
    const restore = () =>
      runVerb(stage.session(), { verb: 'restore', target: { directory }, isDry: false, isForced: false })
    try {
      await runVerb(stage.session(), { verb: 'apply', directory, fsGroup })
      chattr('+')
      expect(await restore()).toMatchObject({
        outcome: 'unfinished',
        next: 'clear the attributes of what is immutable or append-only (chattr -ia), and run restore again',
      })
      chattr('-')
      expect(await restore()).toMatchObject({ outcome: 'restored', next: null })
    } finally {
      chattr('-')
      stage.close()
    }
  })
})
