import { beforeEach, describe, expect, it } from 'vitest'
import type { FsGroupRequest } from '../../src/config/mount-request.ts'
import { DirentIterator } from '../../src/kernel/dirents.ts'
import type { Stat } from '../../src/kernel/host.ts'
import { FirstLinkFilter, HardLinkCounter } from '../../src/ownership/walk/hard-links.ts'
import { applyGroupToTree, restoreTreeOwnership, type SurveyTask, surveyTree } from '../../src/ownership/walks.ts'
import { FS_GROUP } from '../helpers/mount-records.ts'
import { groups, letTicksPass, listTree, makeTree, modes } from '../helpers/tree.ts'
import { Killed } from '../memory-host/world.ts'
import { MemoryVolume } from './volume.ts'

const keep = FS_GROUP
const grant: FsGroupRequest = { ...FS_GROUP, access: 'grant' }

let volume: MemoryVolume
beforeEach(async () => {
  volume = new MemoryVolume()
  makeTree(volume.fs, volume.directory, [
    'file plain 0640 5',
    'file right 0640 2000',
    'file suid 4755',
    'dir deep 0755',
    'dir deep/down 0755',
    'file deep/down/sgid 2755 7',
    'dir closed 0700',
    'link out ../elsewhere',
    'file twice 0600',
    'hard deep/again twice',
    'file /../outside 0600',
    'hard inside ../outside',
  ])
  await letTicksPass()
})

const here = () => ({ groups: groups(now()), modes: modes(now()) })
const now = () => listTree(volume.fs, volume.directory)
const walk = (fsGroup: FsGroupRequest = keep) =>
  volume.call((root, journal) => applyGroupToTree(volume.host.inodes, root, fsGroup, journal))
const putBack = (isForced = false) =>
  volume.call((root, journal) => restoreTreeOwnership(volume.host.inodes, root, journal, {}, isForced))

describe('a walk', () => {
  it('a walk with group access "keep" applies the group, and set-gid to directories, and changes no other bit', async () => {
    const before = here()
    const report = await walk()
    expect(report).toMatchObject({ visited: 12, changed: 8, alreadyRight: 1 })
    const after = here()
    expect(after.groups).toMatchObject({ plain: 2000, suid: 2000, closed: 2000, 'deep/down/sgid': 2000, twice: 2000 })
    expect(after.groups).toMatchObject({ out: before.groups.out, inside: before.groups.inside })
    expect(after.modes).toEqual({ ...before.modes, '.': '2755', closed: '2700', deep: '2755', 'deep/down': '2755' })
    expect(report.left).toEqual({
      symlink: { count: 1, examples: ['out'] },
      'linked outside the volume': { count: 1, examples: ['inside'] },
    })
  })

  it('a walk with group access "grant" adds the mode bits that kubelet would add', async () => {
    const before = here()
    await walk(grant)
    expect(here().modes).toMatchObject({ '.': '2775', closed: '2770', plain: '0660', suid: '4775', twice: '0660' })
    expect(here().modes.inside).toBe(before.modes.inside)
  })

  it('a walk and a restore skip inodes that users changed since the last walk', async () => {
    await walk(grant)
    volume.fs.chmodSync(`${volume.directory}/plain`, 0o600)
    const again = await walk(grant)
    expect(again).toMatchObject({ changed: 0, left: { 'changed since by its user': { examples: ['plain'] } } })
    const { left } = await putBack()
    expect(left).toMatchObject({ 'changed since by its user': { count: 1, examples: ['plain'] } })
    expect(here()).toMatchObject({ modes: { plain: '0600' }, groups: { plain: 2000 } })
    await putBack(true)
    expect(here()).toMatchObject({ modes: { plain: '0640' }, groups: { plain: 5 } })
  })

  it('a restore after any number of groups returns every inode to its first state', async () => {
    const before = here()
    await walk()
    await volume.call((root, journal) =>
      applyGroupToTree(volume.host.inodes, root, { ...grant, groupId: 3000 }, journal),
    )
    await putBack()
    expect(here()).toEqual(before)
    await volume.call(async (_root, journal) => expect(journal.isEmpty()).toBe(true))
  })

  it('a walk interrupted at any action is completed by the next, and restored to the first state', async () => {
    // Names of hard links do not count for a while after their inode was changed.
    volume.fs.unlinkSync(`${volume.directory}/deep/again`)
    const before = here()
    await walk(grant)
    const whole = here()
    const actions = volume.world.actions.length
    await putBack()
    for (let killAt = 0; ; killAt++) {
      volume.world.killAt = killAt
      const killed = await walk(grant).then(
        () => false,
        (error) => error instanceof Killed,
      )
      volume.world.revive()
      if (!killed) break
      expect(killAt).toBeLessThan(actions)
      await walk(grant)
      expect(here()).toEqual(whole)
      await putBack()
      expect(here()).toEqual(before)
    }
  })
})

describe('an entry that vanished between its listing and its inspection', () => {
  const file = 'gone or replaced during the walk'
  const directory = `directory ${file}` as const

  it.each([
    [0, directory],
    [8, file],
  ])('a vanished entry counts as a directory unless its listed type says otherwise (%i)', async (type, reason) => {
    const { readEntries } = volume.host.inodes
    volume.host.inodes.readEntries = (handle) => {
      const bytes = readEntries(handle)
      for (const entries = new DirentIterator(bytes); entries.next(); ) {
        if (Buffer.from(entries.name).toString() !== 'plain') continue
        bytes[entries.place + 18] = type
        volume.fs.rmSync(`${volume.directory}/plain`)
      }
      return bytes
    }
    const { left } = await walk()
    expect(left).toMatchObject({ [reason]: { count: 1, examples: ['plain'] } })
    expect(left).not.toHaveProperty([reason === file ? directory : file])
  })
})

describe('a survey', () => {
  const look = async (task: SurveyTask) => {
    const visited: Stat[] = []
    const changes: string[] = []
    const observer = {
      onVisit: (stat: Stat) => visited.push(stat),
      onWouldChange: (_stat: Stat, { path }: { path: Uint8Array }) => changes.push(Buffer.from(path).toString() || '.'),
    }
    const actions = volume.world.actions.length
    const isReading = true
    const report = await volume.call(
      (root, journal) => surveyTree(volume.host.inodes, root, task, journal, { observer }),
      isReading,
    )
    expect(volume.world.actions.slice(actions)).toEqual([])
    return { report, visited, changes }
  }

  it.each([keep, grant])(
    'a survey counts what a walk then does, and changes and records nothing: %o',
    async (fsGroup) => {
      const before = here()
      const { report, visited, changes } = await look({ do: 'apply', fsGroup })
      expect(here()).toEqual(before)
      expect(visited).toHaveLength(report.visited)
      expect(changes).toHaveLength(report.changed)
      expect(await walk(fsGroup)).toEqual(report)
      expect(await look({ do: 'apply', fsGroup })).toMatchObject({ changes: [], report: { changed: 0 } })
    },
  )

  it('a survey counts what a restore then does, forced or not', async () => {
    await walk(grant)
    volume.fs.chmodSync(`${volume.directory}/plain`, 0o600)
    const forced = await look({ do: 'restore', isForced: true })
    const { report } = await look({ do: 'restore', isForced: false })
    expect(forced.report.changed).toBe(report.changed + 1)
    expect(await putBack()).toEqual(report)
  })

  it('a survey of a volume without a journal treats every inode as new', async () => {
    const root = volume.host.inodes.openLinkFree(volume.directory)
    const observer = { onVisit() {}, onWouldChange() {} }
    const seen = await surveyTree(volume.host.inodes, root, { do: 'apply', fsGroup: keep }, undefined, { observer })
    expect(await walk()).toEqual(seen)
  })
})

describe('a volume with more hard links than a walk can remember', () => {
  const FILES = Array.from({ length: 60 }, (_, at) => `f${at}`)
  beforeEach(async () => {
    // All first names, then all second ones.
    const [first, second] = [
      FILES.map((name) => `file a/${name} 0640 5`),
      FILES.map((name) => `hard b/${name} a/${name}`),
    ]
    makeTree(volume.fs, volume.directory, [...first, ...second])
    await letTicksPass()
  })
  const ownWith = (most: number) =>
    volume.call((root, journal) =>
      applyGroupToTree(volume.host.inodes, root, keep, journal, { names: new HardLinkCounter(most) }),
    )

  it('a walk with too many hard links is refused, and can be repeated or restored like any failed walk', async () => {
    const before = here()
    await expect(ownWith(1000)).rejects.toThrow(/^the volume has more hard links than a walk can remember: /)
    expect(groups(now())).toMatchObject({ 'a/f0': 5, 'b/f59': 5, '.': before.groups['.'] })
    await putBack()
    expect(here()).toEqual(before)
    await ownWith(10_000)
    expect(groups(now())).toMatchObject({ 'a/f0': 2000, 'b/f59': 2000, '.': 2000, inside: before.groups.inside })
    await putBack()
    expect(here()).toEqual(before)
  })

  it('a restore with too many hard links is complete, although it may visit an inode under several names', async () => {
    const before = here()
    await walk(grant)
    expect(groups(now())).toMatchObject({ 'a/f0': 2000, 'b/f59': 2000 })
    await volume.call((root, journal) =>
      restoreTreeOwnership(volume.host.inodes, root, journal, { names: new FirstLinkFilter(1) }),
    )
    expect(here()).toEqual(before)
    await volume.call(async (_root, journal) => expect(journal.isEmpty()).toBe(true))
  })
})
