import { afterEach, beforeEach, expect, it } from 'vitest'
import type { ApplyDocument } from '../../../src/cli/commands/apply.ts'
import { runVerb } from '../../../src/cli/commands/index.ts'
import type { PlanDocument } from '../../../src/cli/commands/plan.ts'
import type { RestoreDocument } from '../../../src/cli/commands/restore.ts'
import type { FsGroupRequest } from '../../../src/config/mount-request.ts'
import { SystemError } from '../../../src/kernel/host.ts'
import type { Session } from '../../../src/state/session.ts'
import { onEveryStage, type Stage } from '../../helpers/stage.ts'
import { groups, letTicksPass, listTree, makeTree, modes, SIX_FILES } from '../../helpers/tree.ts'

onEveryStage('manual commands', (open) => {
  let stage: Stage
  let directory: string
  beforeEach(() => {
    stage = open()
    // Outside of what the rules allow.
    directory = `${stage.top}/elsewhere/data`
    makeTree(stage.fs, directory, [...SIX_FILES, 'dir sub 0700', 'file sub/suid 4755', 'link out ../../outside'])
  })
  afterEach(() => stage.close())

  const session = (): Session => ({
    host: stage.host,
    config: stage.config,
    note: (facts) => Object.assign(stage.noted, facts),
    warn: (message) => stage.warnings.push(message),
  })
  type Changes = Partial<FsGroupRequest>
  const fsGroup = (more: Changes) =>
    ({ groupId: 2000, access: 'keep', changePolicy: 'OnRootMismatch', ...more }) as const
  const plan = (more: Changes = {}) =>
    runVerb(session(), { verb: 'plan', directory, fsGroup: fsGroup(more) }) as Promise<PlanDocument>
  const apply = (more: Changes = {}) =>
    runVerb(session(), { verb: 'apply', directory, fsGroup: fsGroup(more) }) as Promise<ApplyDocument>
  const restore = () =>
    runVerb(session(), {
      verb: 'restore',
      target: { directory },
      isDry: false,
      isForced: false,
    }) as Promise<RestoreDocument>
  const now = () => listTree(stage.fs, directory)
  const asked = (source = directory, group = 2000) => {
    stage.config = { ...stage.config, allow: [{ sources: [`${stage.top}/elsewhere/*`] }] }
    return {
      source,
      ownership: 'walk',
      'kubernetes.io/fsGroup': String(group),
      'kubernetes.io/pod.namespace': 'shop',
      'kubernetes.io/pod.name': 'cart',
    }
  }
  const same = () => ({ ...modes(now()), groups: groups(now()) })

  it('a plan changes nothing and creates no state directory', async () => {
    const before = now()
    await plan()
    await plan({ changePolicy: 'Always', access: 'grant' })
    expect(now()).toEqual(before)
    expect(stage.fs.existsSync(stage.config.stateDir)).toBe(false)
  })

  it('a plan reports the same counts as the apply that follows', async () => {
    for (const more of [
      {},
      {},
      { changePolicy: 'Always' },
      { groupId: 3000 },
      { changePolicy: 'Always', groupId: 3000 },
    ] as const) {
      const { walks, report } = await plan(more)
      const done = await apply(more)
      expect({ walks, report }).toEqual({ walks: done.walked, report: done.report })
    }
  })

  it('a plan shows exactly the changes that apply makes', async () => {
    const before = now()
    const { differences, report } = await plan({ access: 'grant' })
    expect(differences).toHaveLength(9)
    expect(report).toMatchObject({ visited: 10, changed: 9, left: { symlink: { count: 1 } } })
    await apply({ access: 'grant' })
    const octal = (mode: number) => mode.toString(8).padStart(4, '0')
    for (const difference of differences) {
      const { mode, gid } = before[difference.path] ?? {}
      expect({ mode: octal(difference.before.mode), gid: difference.before.gid }).toEqual({ mode, gid })
      expect(now()[difference.path]).toMatchObject({ mode: octal(difference.after.mode), gid: difference.after.gid })
    }
  })

  it('a plan also counts the changes that kubelet would make', async () => {
    const { kubelet, widened } = await plan()
    // Every inode is touched, the link too; test6 and the directory sub are all that gain nothing or little.
    expect(kubelet).toEqual({ walks: true, touched: 10, changed: 10, widened: 8 })
    expect(widened).toBe(0)
    expect((await plan({ access: 'grant' })).widened).toBe(8)
  })

  it('a plan reports that the root makes a walk unnecessary for modekeep and kubelet', async () => {
    stage.fs.chownSync(directory, 0, 2000)
    stage.fs.chmodSync(directory, 0o2775)
    const spared = await plan()
    expect(spared).toMatchObject({ walks: false, report: { visited: 0, changed: 0 }, differences: [] })
    expect(spared.kubelet).toEqual({ walks: false, touched: 0, changed: 0, widened: 0 })
    expect((await apply()).walked).toBe(false)
    stage.fs.chmodSync(directory, 0o2755)
    // Kubelet wants its permission bits on the root.
    expect(await plan()).toMatchObject({ walks: false, kubelet: { walks: true, touched: 10 } })
  })

  it("a plan reports users' changes and recorded inodes", async () => {
    await apply()
    stage.fs.chmodSync(`${directory}/test1`, 0o600)
    const again = await plan({ groupId: 3000 })
    expect(again.recorded).toEqual({
      group: 2000,
      groupAccess: 'keep',
      complete: true,
      left: null,
      restorePending: false,
    })
    expect(again.report.left['changed since by its user']).toEqual({ count: 1, examples: ['test1'] })
    expect((await apply({ groupId: 3000 })).report).toEqual(again.report)
  })

  it('a plan counts hard links as the walk does', async () => {
    makeTree(stage.fs, directory, ['hard sub/again test1', 'hard test1-again test1', 'hard ../outside test2'])
    await letTicksPass()
    const planned = await plan()
    expect(planned.report).toMatchObject({ visited: 12, left: { 'linked outside the volume': { count: 1 } } })
    expect((await apply()).report).toEqual(planned.report)
    expect((await plan({ changePolicy: 'Always' })).report).toEqual((await apply({ changePolicy: 'Always' })).report)
  })

  it('a plan reports a running walk without waiting for its end', async () => {
    const { volume } = await apply()
    expect(await plan()).toMatchObject({ busy: false })
    const lock = stage.host.tryLock(`${stage.config.stateDir}/ownership/${volume}/lock`)
    expect(await plan()).toMatchObject({ busy: true, report: { visited: 0 } })
    lock?.release()
    expect(await plan()).toMatchObject({ busy: false })
  })

  it('a plan leaves the journal writable', async () => {
    await apply()
    await plan({ changePolicy: 'Always' })
    expect((await apply({ groupId: 3000 })).report.changed).toBe(9)
  })

  it('a second apply changes nothing', async () => {
    expect(await apply()).toMatchObject({ walked: true, report: { changed: 9, alreadyRight: 0 } })
    const before = now()
    expect(await apply()).toMatchObject({ walked: false, report: { visited: 0 } })
    expect(await apply({ changePolicy: 'Always' })).toMatchObject({
      walked: true,
      report: { changed: 0, alreadyRight: 9 },
    })
    expect(now()).toEqual(before)
  })

  it('a restore undoes an apply, and then nothing is recorded', async () => {
    const before = same()
    await apply()
    expect(same()).not.toEqual(before)
    expect(await restore()).toMatchObject({ outcome: 'restored', report: { changed: 9, left: {} } })
    expect(same()).toEqual(before)
    expect(await restore()).toMatchObject({ outcome: 'nothing recorded', report: { visited: 0 } })
  })

  it('a restore undoes the changes of a mount', async () => {
    const before = same()
    await stage.mount('a', asked())
    await stage.unmount('a')
    expect(same()).not.toEqual(before)
    expect(await restore()).toMatchObject({ outcome: 'restored', report: { changed: 9 } })
    expect(same()).toEqual(before)
  })

  it('a mount after a restore walks the whole volume and can be restored again', async () => {
    const before = same()
    await apply()
    await restore()
    await stage.mount('a', { ...asked(), restoreOnUnmount: 'true' })
    expect(stage.noted.inodes).toMatchObject({ changed: 9 })
    await stage.unmount('a')
    expect(same()).toEqual(before)
  })

  it('a mount after a restore walks the volume for any group and mode of its root', async () => {
    await apply()
    // A user's own: the restore leaves it, and it looks like a walked root.
    stage.fs.chmodSync(directory, 0o2777)
    expect((await restore()).report.left['changed since by its user']).toEqual({ count: 1, examples: ['.'] })
    await stage.mount('a', asked())
    expect(groups(now()).test1).toBe(2000)
  })

  it('a restore of an unchanged volume reports that nothing is recorded, and creates no state directory', async () => {
    const before = now()
    expect(await restore()).toMatchObject({ outcome: 'nothing recorded', report: { visited: 0, changed: 0 } })
    expect(now()).toEqual(before)
    expect(stage.fs.existsSync(stage.config.stateDir)).toBe(false)
  })

  it('a restore skips and names inodes that users changed after the walk', async () => {
    await apply()
    stage.fs.chmodSync(`${directory}/test1`, 0o600)
    const done = await restore()
    expect(done.outcome).toBe('partly restored')
    expect(done.report.left['changed since by its user']).toEqual({ count: 1, examples: ['test1'] })
    expect(now().test1).toMatchObject({ mode: '0600', gid: 2000 })
    expect(now().test2).toMatchObject({ mode: '0000', gid: 0 })
  })

  it("a restore works if the volume's record is unreadable", async () => {
    const before = same()
    const { volume } = await apply()
    stage.fs.writeFileSync(`${stage.config.stateDir}/ownership/${volume}/record.json`, '{')
    expect(await restore()).toMatchObject({ outcome: 'restored', report: { changed: 9 } })
    expect(same()).toEqual(before)
    await stage.mount('a', asked())
    expect(groups(now()).test1).toBe(2000)
  })

  it('apply and restore refuse a volume that a pod uses, and name the pod', async () => {
    await stage.mount('a', asked())
    const before = now()
    const named = /pod shop\/cart/
    await expect(restore()).rejects.toThrow(named)
    await expect(apply({ groupId: 3000 })).rejects.toThrow(named)
    expect((await plan({ groupId: 3000 })).refusal).toMatch(named)
    expect(now()).toEqual(before)
    // The same group is no conflict.
    expect(await plan({ changePolicy: 'Always' })).toMatchObject({ refusal: null })
    expect(await apply({ changePolicy: 'Always' })).toMatchObject({ report: { changed: 0 } })
    await stage.unmount('a')
    expect(await restore()).toMatchObject({ outcome: 'restored' })
  })

  it('apply and restore refuse a volume if a pod uses a part of the volume', async () => {
    await stage.mount('a', asked(`${directory}/sub`))
    await apply()
    await expect(restore()).rejects.toThrow('pod shop/cart')
    await expect(apply({ groupId: 3000 })).rejects.toThrow('pod shop/cart')
  })

  it('a pod that mounts without a walk does not block a restore', async () => {
    const { ownership: _, ...unwalked } = asked()
    await stage.mount('a', unwalked)
    await apply()
    expect(await restore()).toMatchObject({ outcome: 'restored' })
  })

  it('no command leaves a mount or a mount record', async () => {
    const table = stage.host.mounts.table()
    await plan()
    await apply()
    await restore()
    expect(stage.host.mounts.table()).toBe(table)
    expect(stage.fs.existsSync(`${stage.config.stateDir}/mounts`)).toBe(false)
  })

  it('a pending restore of a pod stays pending, and returns to the applied state', async () => {
    await stage.mount('a', { ...asked(), restoreOnUnmount: 'true' })
    await apply({ changePolicy: 'Always' })
    expect((await plan()).recorded).toMatchObject({ restorePending: true })
    await stage.unmount('a')
    expect(groups(now()).test1).toBe(2000)
    expect((await plan()).recorded).toMatchObject({ restorePending: false })
    expect(await restore()).toMatchObject({ outcome: 'restored' })
    expect(groups(now()).test1).toBe(0)
  })

  it.each([
    ['missing', 'does not exist'],
    ['test1', 'is not a directory'],
    ['out', 'symbolic link'],
  ])('a target directory "%s" is refused, and the message names the directory', async (name, reason) => {
    directory = `${directory}/${name}`
    for (const verb of [plan, apply, restore]) await expect(verb()).rejects.toThrow(reason)
    await expect(plan()).rejects.toThrow(`directory "${directory}"`)
  })

  it('a root user who may not mount, as in a container, is advised to run the command on the node', async () => {
    const { mounts } = stage.host
    const cloneTree = () => {
      throw new SystemError('open_tree', 'EPERM', 'the source')
    }
    stage.host = { ...stage.host, mounts: { ...mounts, cloneTree } }
    for (const verb of [plan, apply, restore]) await expect(verb()).rejects.toThrow('run it on the node')
  })

  it('nested volumes are restored in any order', async () => {
    const before = same()
    const whole = directory
    await apply()
    directory = `${whole}/sub`
    await apply({ groupId: 3000 })
    directory = whole
    expect((await restore()).report.left['changed since by its user']?.count).toBe(2)
    directory = `${whole}/sub`
    await restore()
    directory = whole
    expect((await restore()).report).toMatchObject({ changed: 2, left: {} })
    expect(same()).toEqual(before)
  })

  it("the directories of modekeep's own records are refused", async () => {
    await apply()
    const { stateDir } = stage.config
    for (const place of [`${stateDir}/ownership`, `${stateDir}/mounts`, stateDir, stage.top, '/']) {
      directory = place
      for (const verb of [plan, apply, restore]) await expect(verb()).rejects.toThrow("holds modekeep's own records")
    }
  })

  it('a record without its journal makes plan and apply fail', async () => {
    const { volume } = await apply()
    stage.fs.rmSync(`${stage.config.stateDir}/ownership/${volume}/journal.db`)
    const before = now()
    await expect(plan({ groupId: 3000 })).rejects.toThrow('although the volume was walked before')
    await expect(apply({ groupId: 3000 })).rejects.toThrow('although the volume was walked before')
    expect(now()).toEqual(before)
  })
})
