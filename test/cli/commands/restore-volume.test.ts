import { afterEach, beforeEach, expect, it } from 'vitest'
import type { ApplyDocument } from '../../../src/cli/commands/apply.ts'
import { runVerb } from '../../../src/cli/commands/index.ts'
import type { RestoreDocument } from '../../../src/cli/commands/restore.ts'
import { onEveryStage, onKernelStages, type Stage } from '../../helpers/stage.ts'
import { groups, listTree, makeTree, modes, SIX_FILES } from '../../helpers/tree.ts'
import { acl, attributes, setAttributes } from '../../real-mounts/attributes.ts'

onEveryStage('a restore by volume, dry or forced', (open) => {
  let stage: Stage
  let directory: string
  beforeEach(() => {
    stage = open()
    directory = `${stage.top}/volumes/data`
    makeTree(stage.fs, directory, [...SIX_FILES, 'file suid 4755', 'hard again test6'])
  })
  afterEach(() => stage.close())

  type Order = Partial<{ isDry: boolean; isForced: boolean; volume: string }>
  const restore = ({ volume, ...more }: Order = {}) =>
    runVerb(stage.session(), {
      verb: 'restore',
      target: volume === undefined ? { directory } : { volume },
      isDry: false,
      isForced: false,
      ...more,
    }) as Promise<RestoreDocument>
  const apply = async () => {
    const fsGroup = { groupId: 2000, access: 'keep', changePolicy: 'Always' } as const
    return ((await runVerb(stage.session(), { verb: 'apply', directory, fsGroup })) as ApplyDocument).volume
  }
  const now = () => listTree(stage.fs, directory)
  const same = () => ({ ...modes(now()), groups: groups(now()) })

  it('a dry run of restore changes nothing and reports the changes that the restore then makes', async () => {
    const original = same()
    const volume = await apply()
    stage.fs.chmodSync(`${directory}/test1`, 0o600)
    const before = now()
    const dry = await restore({ isDry: true })
    expect(now()).toEqual(before)
    expect(dry).toMatchObject({ outcome: 'would restore', refusal: null, directory, volume })
    const done = await restore()
    expect(done.outcome).toBe('partly restored')
    expect(dry.report).toEqual(done.report)
    expect(dry.differences).toHaveLength(dry.report.changed)
    for (const { path, after } of dry.differences) {
      expect({ gid: now()[path]?.gid, mode: now()[path]?.mode }).toEqual({
        gid: after.gid,
        mode: after.mode.toString(8).padStart(4, '0'),
      })
    }
    expect({ ...same(), test1: '0644' }).toEqual({ ...original, groups: { ...original.groups, test1: 2000 } })
    expect(await restore({ isDry: true })).toMatchObject({ report: { changed: 0 }, differences: [] })
  })

  it('a restore by volume name finds the volume at the recorded path', async () => {
    const before = same()
    const volume = await apply()
    expect(await restore({ volume })).toMatchObject({ outcome: 'restored', directory, volume })
    expect(same()).toEqual(before)
  })

  it('a restore by volume name refuses another directory at the recorded path', async () => {
    const volume = await apply()
    stage.fs.renameSync(directory, `${directory}-away`)
    makeTree(stage.fs, directory, SIX_FILES)
    await expect(restore({ volume })).rejects.toThrow(
      `volume ${volume} cannot be found: ${directory} is another one now`,
    )
    await expect(restore({ volume: '1.2-3-4' })).rejects.toThrow('nothing is recorded of volume 1.2-3-4')
  })

  it('a restore is refused while a pod uses the volume, also with --force, and a dry run reports the refusal', async () => {
    const options = { source: directory, ownership: 'walk', 'kubernetes.io/fsGroup': '2000' }
    await stage.mount('a', { ...options, 'kubernetes.io/pod.name': 'cart', 'kubernetes.io/pod.namespace': 'shop' })
    const before = now()
    await expect(restore()).rejects.toThrow('pod shop/cart uses')
    await expect(restore({ isForced: true })).rejects.toThrow('pod shop/cart uses')
    expect(await restore({ isDry: true })).toMatchObject({ refusal: expect.stringContaining('pod shop/cart uses') })
    expect(now()).toEqual(before)
  })

  it('a restore is refused while a pod maps the group, and succeeds by volume name after that pod has ended', async () => {
    const before = same()
    const volume = await apply()
    await stage.mount('a', { source: directory, ownership: 'idmap', 'kubernetes.io/fsGroup': '3000' })
    await expect(restore({ volume, isForced: true })).rejects.toThrow('with group 2000 on disk')
    await stage.unmount('a')
    expect(await restore({ volume })).toMatchObject({ outcome: 'restored' })
    expect(same()).toEqual(before)
  })

  it("a forced restore undoes users' changes, but does not return a privilege that a user removed", async () => {
    const before = same()
    await apply()
    stage.fs.chmodSync(`${directory}/test1`, 0o600)
    stage.fs.chownSync(`${directory}/test2`, 0, 4000)
    stage.fs.chmodSync(`${directory}/suid`, 0o0700)
    // The directory's own bits are no privilege.
    stage.fs.chmodSync(directory, 0o0700)
    const dry = await restore({ isDry: true, isForced: true })
    const done = await restore({ isForced: true })
    expect(done).toMatchObject({ outcome: 'restored', isForced: true })
    expect(dry.report).toEqual(done.report)
    expect(done.report.left).toEqual({ 'privileges not given back': { count: 1, examples: ['suid'] } })
    expect(same()).toEqual({ ...before, suid: '0755' })
  })

  it('a forced restore returns a set-uid bit that no user removed', async () => {
    const before = same()
    await apply()
    stage.fs.chmodSync(`${directory}/suid`, 0o4711)
    await restore({ isForced: true })
    // memfs has no times to tell by that the content is the recorded one.
    expect(same()).toEqual(stage.world ? { ...before, suid: '0755' } : before)
  })
})

// cap_net_raw=ep, struct vfs_cap_data version 2.
const NET_RAW = '0x0100000200200000000000000000000000000000'

onKernelStages('a forced restore', (open) => {
  let stage: Stage
  let directory: string
  beforeEach(() => {
    stage = open()
    directory = `${stage.top}/volumes/data`
    makeTree(stage.fs, directory, ['file plain 0640', 'file listed 0640', 'file able 0755', 'file given 0755'])
    setAttributes(directory, { listed: { 'system.posix_acl_access': acl('u::rw-,u:1000:r--,g::r--,m::r--,o::---') } })
    setAttributes(directory, { able: { 'security.capability': NET_RAW } })
  })
  afterEach(() => stage.close())

  const fsGroup = { groupId: 2000, access: 'keep', changePolicy: 'Always' } as const
  const force = () =>
    runVerb(stage.session(), {
      verb: 'restore',
      target: { directory },
      isDry: false,
      isForced: true,
    }) as Promise<RestoreDocument>

  it('a forced restore returns ACLs that users added, changed or removed after the walk', async () => {
    const before = ['plain', 'listed'].map((name) => attributes(`${directory}/${name}`))
    await runVerb(stage.session(), { verb: 'apply', directory, fsGroup })
    setAttributes(directory, { plain: { 'system.posix_acl_access': acl('u::rw-,u:1000:rw-,g::r--,m::rw-,o::---') } })
    setAttributes(directory, {
      listed: { 'system.posix_acl_access': acl('u::rw-,u:1000:rw-,u:1001:r--,g::r--,m::rw-,o::---') },
    })
    expect((await force()).report.left).toEqual({})
    expect(['plain', 'listed'].map((name) => attributes(`${directory}/${name}`))).toEqual(before)
    expect(modes(listTree(stage.fs, directory))).toMatchObject({ plain: '0640', listed: '0640' })
    expect(groups(listTree(stage.fs, directory))).toMatchObject({ plain: 0, listed: 0 })
  })

  it('a forced restore sets no capability on changed content, and removes no capability that was added after the walk', async () => {
    await runVerb(stage.session(), { verb: 'apply', directory, fsGroup })
    stage.fs.writeFileSync(`${directory}/able`, 'other content')
    setAttributes(directory, { given: { 'security.capability': NET_RAW } })
    const { report } = await force()
    expect(report.left).toMatchObject({
      'privileges not given back': { count: 1, examples: ['able'] },
      'changed since by its user': { count: 1, examples: ['given'] },
    })
    expect(attributes(`${directory}/able`)).not.toContain('security.capability')
    expect(attributes(`${directory}/given`)).toContain('security.capability')
    expect(groups(listTree(stage.fs, directory))).toMatchObject({ able: 0, given: 2000 })
  })
})
