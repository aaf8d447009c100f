import { execFileSync } from 'node:child_process'
import { afterEach, beforeEach, expect, it } from 'vitest'
import type { Inodes } from '../../src/kernel/host.ts'
import { requireProgram } from '../helpers/needs.ts'
import { disableBatches } from '../helpers/single-calls.ts'
import { onKernelStages, type Stage } from '../helpers/stage.ts'
import { groups, listTree, makeTree, modes } from '../helpers/tree.ts'

const CAPABILITY_ATTRIBUTE = 'AAAAAgAgAAAAAAAAAAAAAAAAAAA=' // cap_net_raw, permitted: struct vfs_cap_data revision 2

onKernelStages('around a walk', (open) => {
  let stage: Stage
  let source: string
  beforeEach(() => {
    stage = open()
    source = `${stage.top}/volumes/data`
  })
  afterEach(() => stage.close())

  const asked = (more: Record<string, string> = {}) => ({
    source,
    ownership: 'walk',
    'kubernetes.io/fsGroup': '2000',
    restoreOnUnmount: 'true',
    ...more,
  })
  const now = () => listTree(stage.fs, source)
  const left = () => (stage.noted.inodes as { left: Record<string, { count: number }> }).left
  const capabilityOf = (name: string) => {
    try {
      return execFileSync(
        requireProgram('getfattr'),
        ['--only-values', '-n', 'security.capability', `${source}/${name}`],
        {
          stdio: 'pipe',
        },
      ).toString('base64')
    } catch {
      return 'none'
    }
  }
  const giveCapability = (name: string) =>
    execFileSync(requireProgram('setfattr'), [
      '-n',
      'security.capability',
      '-v',
      `0s${CAPABILITY_ATTRIBUTE}`,
      `${source}/${name}`,
    ])

  /** Lets `then` happen in the middle of a batch: right before the first inode of the walk is changed. */
  function beforeFirstChange(then: (inodes: Inodes) => void): void {
    const { inodes } = stage.host
    let first = true
    stage.host.inodes = {
      ...disableBatches(inodes),
      chown(handle, gid) {
        if (first) then(inodes)
        first = false
        inodes.chown(handle, gid)
      },
    }
  }

  /** The process dies in place of its n-th chmod: nothing after it happens. */
  function dieAt(call: 'chmod' | 'chown', n: number): () => void {
    const { inodes } = stage.host
    let left = n
    stage.host.inodes = {
      ...disableBatches(inodes),
      [call]: (...args: never[]) => {
        if (--left < 0) throw new Error('died')
        ;(inodes[call] as (...args: never[]) => void)(...args)
      },
    }
    return () => {
      stage.host.inodes = inodes
    }
  }

  it('a capability is not returned to content that was written since', async () => {
    makeTree(stage.fs, source, ['file tool 0775', 'file kept 0775'])
    giveCapability('tool')
    giveCapability('kept')
    await stage.mount('a', asked())
    // The group may write; the kernel takes the capability away.
    execFileSync('setpriv', [
      '--reuid',
      '12345',
      '--regid',
      '2000',
      '--clear-groups',
      'sh',
      '-c',
      `echo evil > ${source}/tool`,
    ])
    expect(capabilityOf('tool')).toBe('none')
    await stage.unmount('a')
    expect(capabilityOf('tool')).toBe('none')
    expect(capabilityOf('kept')).toBe(CAPABILITY_ATTRIBUTE)
    expect(groups(now())).toMatchObject({ tool: 2000, kept: 0 })
    expect(left()['changed since by its user']).toMatchObject({ count: 1 })
  })

  it('a mode that a user restricted between record and change stays', async () => {
    makeTree(stage.fs, source, ['file a 0644', 'file suid 4755', 'file written 4775', 'dir d 0755', 'dir e 0755'])
    giveCapability('written')
    beforeFirstChange(() => {
      stage.fs.chmodSync(`${source}/suid`, 0o600)
      stage.fs.chmodSync(`${source}/d`, 0o700)
      stage.fs.chmodSync(`${source}/a`, 0o600)
      execFileSync('setpriv', [
        '--reuid',
        '1',
        '--regid',
        '0',
        '--clear-groups',
        'sh',
        '-c',
        `echo evil > ${source}/written`,
      ])
    })
    await stage.mount('a', asked())
    const after = modes(now())
    expect(after).toMatchObject({ written: '0775', e: '2755' })
    for (const name of ['suid', 'a']) expect(after[name]).toBe('0600')
    expect(after.d).toMatch(/^[02]700$/)
    expect(capabilityOf('written')).toBe('none')
  })

  it('a crash between chown and chmod, several batches on, loses no set-uid bit', async () => {
    const suid = Array.from({ length: 1300 }, (_, n) => `file s${n} 4755 5`)
    makeTree(stage.fs, source, suid)
    const before = now()
    for (const call of ['chmod', 'chown'] as const) {
      const revive = dieAt(call, 900)
      await expect(stage.mount('a', asked())).rejects.toThrow('died')
      revive()
      expect(stage.layers('a')).toEqual([])
      // The other group: its batches come before the dead one's inodes are met again.
      await stage.mount('a', asked({ 'kubernetes.io/fsGroup': '3000' }))
      expect(new Set(Object.values(groups(now())))).toEqual(new Set([3000]))
      expect(modes(now())).toEqual({ ...modes(before), '.': '2755' })
      await stage.unmount('a')
      expect(groups(now())).toEqual(groups(before))
      expect(modes(now())).toEqual(modes(before))
    }
  })

  it('an interrupted restore is completed or replaced by a walk before any pod gets the volume', async () => {
    makeTree(
      stage.fs,
      source,
      Array.from({ length: 1300 }, (_, n) => `file f${n} ${n % 2 ? '0640' : '4750'} 5`),
    )
    const before = now()
    await stage.mount('a', asked())
    const revive = dieAt('chown', 900)
    await stage.unmount('a')
    revive()
    expect(stage.warnings).toEqual([expect.stringMatching(/volume not restored, tried again.*died/)])
    await stage.mount('b', asked({ restoreOnUnmount: 'false' }))
    expect(new Set(Object.values(groups(now())))).toEqual(new Set([2000]))
    expect(modes(now())).toEqual({ ...modes(before), '.': '2755' })
    // The restore that the first pod asked for is still pending, and the last unmount runs it.
    await stage.unmount('b')
    expect(groups(now())).toEqual(groups(before))
    expect(modes(now())).toEqual(modes(before))
  })

  it("a pending restore belongs to the volume: the last pod's unmount runs it, and a read-only pod has none", async () => {
    makeTree(stage.fs, source, ['file a 0640 5'])
    await stage.mount('a', asked())
    await stage.mount('b', asked({ restoreOnUnmount: 'false' }))
    await stage.unmount('a')
    expect(groups(now()).a).toBe(2000)
    await stage.unmount('b')
    expect(groups(now()).a).toBe(5)
    await stage.mount('c', asked({ restoreOnUnmount: 'false' }))
    await stage.unmount('c')
    await stage.mount('d', asked({ 'kubernetes.io/readwrite': 'ro' }))
    await stage.unmount('d')
    expect(groups(now()).a).toBe(2000)
  })

  it("a restore refuses another directory at the volume's path, and keeps its records", async () => {
    makeTree(stage.fs, source, ['file a 0640 5'])
    const before = now()
    await stage.mount('a', asked())
    stage.fs.renameSync(source, `${source}.moved`)
    makeTree(stage.fs, source, ['file a 0640 2000'])
    await stage.unmount('a')
    expect(stage.warnings).toEqual([expect.stringMatching(/another directory than the one that was mounted/)])
    expect(groups(now()).a).toBe(2000)
    stage.fs.rmSync(source, { recursive: true })
    stage.fs.renameSync(`${source}.moved`, source)
    await stage.mount('a', asked())
    await stage.unmount('a')
    expect(groups(now())).toEqual(groups(before))
    expect(modes(now())).toEqual(modes(before))
  })

  it('inodes that an interrupted restore did not visit are restored by the next restore', async () => {
    makeTree(stage.fs, source, ['file a 0640 5', 'file b 0640 5'])
    await stage.mount('a', asked())
    stage.fs.renameSync(`${source}/b`, `${stage.top}/hidden`)
    await stage.unmount('a')
    stage.fs.renameSync(`${stage.top}/hidden`, `${source}/b`)
    expect(groups(now())).toMatchObject({ a: 5, b: 2000 })
    await stage.mount('a', asked())
    await stage.unmount('a')
    expect(groups(now())).toMatchObject({ a: 5, b: 5 })
  })

  it("a source inside another pod's source, or around it, cannot get another group", async () => {
    makeTree(stage.fs, source, ['file sub/inner 0640'])
    await stage.mount('a', asked({ source: `${source}/sub` }))
    await expect(stage.mount('b', asked({ 'kubernetes.io/fsGroup': '3000' }))).rejects.toThrow(/belongs to group 2000/)
    await stage.unmount('a')
    await stage.mount('b', asked({ 'kubernetes.io/fsGroup': '3000' }))
    await expect(stage.mount('a', asked({ source: `${source}/sub` }))).rejects.toThrow(/belongs to group 3000/)
    expect(groups(now())['sub/inner']).toBe(3000)
  })

  it('set-uid and a capability that a user removed before an interrupted call returned them stay removed', async () => {
    makeTree(stage.fs, source, ['file suid 4755 5', 'file tool 0755 5'])
    giveCapability('tool')
    const revive = dieAt('chown', 0)
    await expect(stage.mount('a', asked())).rejects.toThrow('died')
    revive()
    stage.fs.chmodSync(`${source}/suid`, 0o755)
    execFileSync(requireProgram('setfattr'), ['-x', 'security.capability', `${source}/tool`])
    await stage.mount('a', asked({ fsGroupChangePolicy: 'Always' }))
    expect(modes(now()).suid).toBe('0755')
    expect(capabilityOf('tool')).toBe('none')
    await stage.unmount('a')
    expect(modes(now()).suid).toBe('0755')
    expect(capabilityOf('tool')).toBe('none')
  })

  it('an incomplete change is completed, also of an immutable and of a renamed file', async ({ skip }) => {
    makeTree(stage.fs, source, ['file suid 4755 5'])
    const before = now()
    const revive = dieAt('chmod', 0)
    await expect(stage.mount('a', asked())).rejects.toThrow('died')
    revive()
    expect(modes(now()).suid).toBe('0755')
    try {
      execFileSync(requireProgram('chattr'), ['+i', `${source}/suid`])
    } catch {
      skip('this file system has no immutable attribute before Linux 6.6')
    }
    await expect(stage.mount('a', asked())).rejects.toThrow(/EPERM/)
    execFileSync(requireProgram('chattr'), ['-i', `${source}/suid`])
    stage.fs.renameSync(`${source}/suid`, `${source}/other`)
    stage.fs.renameSync(`${source}/other`, `${source}/suid`)
    await stage.mount('a', asked())
    expect(modes(now()).suid).toBe('4755')
    await stage.unmount('a')
    expect(groups(now())).toEqual(groups(before))
    expect(modes(now())).toEqual(modes(before))
  })

  it('set-gid is not returned for an owner outside the group who wrote and reset mtime', async () => {
    makeTree(stage.fs, source, ['file tool 0755 5'])
    stage.fs.chownSync(`${source}/tool`, 12345, 5)
    stage.fs.chmodSync(`${source}/tool`, 0o2775)
    const revive = dieAt('chmod', 0)
    await expect(stage.mount('a', asked())).rejects.toThrow('died')
    revive()
    await stage.mount('a', asked({ fsGroupChangePolicy: 'Always' }))
    expect(modes(now()).tool).toBe('0775')
  })

  it('a root that its users changed does not make a restored tree count as walked', async () => {
    makeTree(stage.fs, source, ['file a 0640 5'])
    await stage.mount('a', asked())
    stage.fs.chmodSync(source, 0o2770)
    await stage.unmount('a')
    expect(groups(now())).toEqual({ '.': 2000, a: 5 })
    await stage.mount('a', asked())
    expect(groups(now()).a).toBe(2000)
  })

  it('a restore waits for pods that use a part of the volume', async () => {
    makeTree(stage.fs, source, ['file sub/inner 0640 5'])
    await stage.mount('a', asked())
    await stage.mount('b', asked({ source: `${source}/sub`, restoreOnUnmount: 'false' }))
    await stage.unmount('a')
    expect(groups(now())['sub/inner']).toBe(2000)
    await stage.unmount('b')
    await stage.mount('a', asked())
    await stage.unmount('a')
    expect(groups(now())['sub/inner']).toBe(5)
  })

  it('an unreadable volume record makes the next mount walk', async () => {
    makeTree(stage.fs, source, ['file a 0640 5'])
    await stage.mount('a', asked())
    const place = `${stage.config.stateDir}/ownership`
    stage.fs.writeFileSync(`${place}/${stage.fs.readdirSync(place)[0]}/record.json`, '{')
    await stage.unmount('a')
    stage.fs.writeFileSync(`${source}/new`, '')
    stage.fs.chownSync(`${source}/new`, 0, 0)
    await stage.mount('a', asked())
    expect(groups(now())).toEqual({ '.': 2000, a: 2000, new: 2000 })
  })
})
