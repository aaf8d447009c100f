import { execFileSync } from 'node:child_process'
import { beforeEach, expect, it, onTestFinished } from 'vitest'
import { requireProgram } from '../helpers/needs.ts'
import { onKernelStages, type Stage } from '../helpers/stage.ts'
import { groups, letTicksPass, listTree, makeTree, modes } from '../helpers/tree.ts'
import { applyToDirectory } from '../helpers/walk.ts'
import { makeSocket } from './socket.ts'

onKernelStages('a walk, inside of a volume,', (open) => {
  let stage: Stage
  let source: string
  beforeEach(() => {
    stage = open()
    source = `${stage.top}/volumes/data`
    // After the unmounts of the test itself.
    onTestFinished(() => stage.close())
  })

  const walk = (more: Record<string, string> = {}) =>
    stage.mount('a', {
      source,
      ownership: 'walk',
      'kubernetes.io/fsGroup': '2000',
      restoreOnUnmount: 'true',
      fsGroupChangePolicy: 'Always',
      ...more,
    })
  const now = () => listTree(stage.fs, source)
  const left = () => (stage.noted.inodes as { left: Record<string, { count: number; examples: string[] }> }).left

  function needAttributes(skip: (reason: string) => never): void {
    try {
      chattr('i', '.')[Symbol.dispose]()
    } catch {
      skip('this file system has no immutable attribute before Linux 6.6')
    }
  }

  /** Sets an attribute for the rest of a block. */
  function chattr(flag: string, ...names: string[]): Disposable {
    const call = (sign: string) =>
      execFileSync(requireProgram('chattr'), [sign + flag, ...names], { cwd: source, stdio: 'pipe' })
    call('+')
    return { [Symbol.dispose]: () => void call('-') }
  }

  const mountInside = (...args: string[]) => {
    execFileSync('mount', args)
    onTestFinished(() => {
      execFileSync('umount', [args.at(-1) ?? ''])
    })
  }

  function makeMounts(): Record<string, unknown> {
    makeTree(stage.fs, source, [
      'dir other/below 0755',
      'dir same 0755',
      'dir self 0755',
      'file one 0644',
      'file a 0644',
    ])
    makeTree(stage.fs, `${stage.top}/elsewhere`, ['dir d 0700', 'file d/theirs 0600', 'file alone 0600'])
    mountInside('-t', 'tmpfs', '-o', 'mode=0700', 'inner', `${source}/other/below`)
    stage.fs.writeFileSync(`${source}/other/below/x`, '')
    mountInside('--bind', `${stage.top}/elsewhere`, `${source}/same`)
    mountInside('--bind', `${stage.top}/elsewhere/alone`, `${source}/one`)
    mountInside('--bind', `${source}/other`, `${source}/self`)
    return mounted()
  }
  const mounted = () => ({
    elsewhere: listTree(stage.fs, `${stage.top}/elsewhere`),
    tmpfs: listTree(stage.fs, `${source}/other/below`),
  })

  it('does not enter a mount of another device, of the same, of a file or of a part of itself', async () => {
    const before = makeMounts()
    const journal = `${stage.top}/journal.sqlite`
    const report = await applyToDirectory({ directory: source, journal, inPlace: true }, 2000)
    expect(report.left['sub-mount']?.count).toBe(4)
    expect(mounted()).toEqual(before)
    expect(stage.fs.lstatSync(`${source}/other`).gid).toBe(2000)
    expect(stage.fs.lstatSync(`${source}/a`).gid).toBe(2000)
  })

  it('changes the inodes that mounts inside the volume cover, and not the inodes that those mounts show', async () => {
    const before = makeMounts()
    await walk({ submounts: 'hide' })
    expect(mounted()).toEqual(before)
    expect(groups(stage.shown('a'))).toEqual({
      '.': 2000,
      a: 2000,
      one: 2000,
      same: 2000,
      self: 2000,
      other: 2000,
      'other/below': 2000,
    })
    await stage.unmount('a')
    expect(mounted()).toEqual(before)
  })

  it('skips block and character devices, including their modes', async () => {
    makeTree(stage.fs, source, ['file a 0644'])
    execFileSync('mknod', ['-m', '0660', `${source}/disk`, 'b', '7', '0'])
    execFileSync('mknod', ['-m', '0666', `${source}/zero`, 'c', '1', '5'])
    const { disk, zero } = now()
    await walk()
    expect(left().device).toEqual({ count: 2, examples: expect.arrayContaining(['disk', 'zero']) })
    await stage.unmount('a')
    expect(now()).toMatchObject({ disk, zero })
  })

  it('changes an inode of any type with many names once, and a restore returns it once', async () => {
    makeTree(stage.fs, source, ['file d/suid 4755 5', 'hard suid d/suid', 'hard e/suid d/suid'])
    execFileSync('mkfifo', ['-m', '0600', `${source}/fifo`])
    stage.fs.linkSync(`${source}/fifo`, `${source}/d/fifo`)
    await makeSocket(`${source}/socket`)
    stage.fs.linkSync(`${source}/socket`, `${source}/d/socket`)
    await letTicksPass()
    const before = now()
    await walk()
    expect(stage.noted.inodes).toMatchObject({ changed: 6, left: {} })
    expect(new Set(Object.values(groups(now())))).toEqual(new Set([2000]))
    expect(modes(now())).toMatchObject({ suid: '4755', 'e/suid': '4755' })
    await stage.unmount('a')
    expect(stage.noted.inodes).toMatchObject({ changed: 6, left: {} })
    expect(groups(now())).toEqual(groups(before))
    expect(modes(now())).toEqual(modes(before))
  })

  it('skips an inode with a name outside, under each name inside, until that name is deleted', async () => {
    makeTree(stage.fs, source, ['file d/shared 4755 5', 'hard shared d/shared', 'hard e/shared d/shared'])
    execFileSync('mkfifo', [`${source}/fifo`])
    stage.fs.linkSync(`${source}/shared`, `${stage.top}/theirs`)
    stage.fs.linkSync(`${source}/fifo`, `${stage.top}/their-fifo`)
    const { shared, fifo } = now()
    await walk()
    expect(left()['linked outside the volume']?.count).toBe(2)
    expect(now()).toMatchObject({ shared, fifo })
    await stage.unmount('a')
    stage.fs.rmSync(`${stage.top}/theirs`)
    await letTicksPass()
    await walk()
    expect(left()['linked outside the volume']).toEqual({ count: 1, examples: ['fifo'] })
    expect(groups(now())).toMatchObject({ shared: 2000, 'd/shared': 2000, fifo: 0 })
    await stage.unmount('a')
    expect(now().shared).toMatchObject({ gid: 5, mode: '4755' })
  })

  it('continues past immutable and append-only inodes, into such directories too, and changes each later', async ({
    skip,
  }) => {
    makeTree(stage.fs, source, ['file log 0640 5', 'file fixed 0640 5', 'dir sealed 0755', 'file sealed/a 0640 5'])
    needAttributes(skip)
    const before = now()
    {
      using _ = chattr('a', 'log')
      using __ = chattr('i', 'fixed', 'sealed')
      await walk()
      expect(left()['immutable or append-only']?.count).toBe(3)
      expect(groups(now())).toEqual({ '.': 2000, log: 5, fixed: 5, sealed: 0, 'sealed/a': 2000 })
      await stage.unmount('a')
    }
    expect(groups(now())).toEqual(groups(before))
    await walk()
    expect(new Set(Object.values(groups(now())))).toEqual(new Set([2000]))
    await stage.unmount('a')
    expect(groups(now())).toEqual(groups(before))
    expect(modes(now())).toEqual(modes(before))
  })

  it('keeps the restore of an inode that became immutable pending, and completes it later', async ({ skip }) => {
    makeTree(stage.fs, source, ['file log 4750 5', 'file a 0640 5'])
    needAttributes(skip)
    const before = now()
    await walk()
    {
      using _ = chattr('i', 'log')
      await stage.unmount('a')
      expect(groups(now())).toMatchObject({ log: 2000, a: 5 })
    }
    await walk({ restoreOnUnmount: 'false' })
    await stage.unmount('a')
    expect(groups(now())).toEqual(groups(before))
    expect(modes(now())).toEqual(modes(before))
  })

  it('changes nothing on a read-only file system', async () => {
    makeTree(stage.fs, source, [])
    mountInside('-t', 'tmpfs', '-o', 'mode=0755', 'fixed', source)
    makeTree(stage.fs, source, ['file a 0640 5', 'dir d 0755'])
    execFileSync('mount', ['-o', 'remount,ro', source])
    const before = now()
    await expect(walk()).rejects.toThrow(
      /is on a read-only mount or file system .* cannot be given group \d+: make it writable/,
    )
    expect(now()).toEqual(before)
  })
})
