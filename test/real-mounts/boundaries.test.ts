import { execFileSync } from 'node:child_process'
import { createServer } from 'node:net'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { requireProgram } from '../helpers/needs.ts'
import { onKernelStages, type Stage } from '../helpers/stage.ts'
import { groups, listTree, makeTree, modes } from '../helpers/tree.ts'

const CAPABILITY_ATTRIBUTE = 'AAAAAgAgAAAAAAAAAAAAAAAAAAA=' // cap_net_raw, permitted: struct vfs_cap_data revision 2

onKernelStages('a walk at its boundaries', (open) => {
  let stage: Stage
  let source: string
  beforeEach(() => {
    stage = open()
    source = `${stage.top}/volumes/data`
  })
  afterEach(() => stage.close())

  const walk = (more: Record<string, string> = {}) =>
    stage.mount('a', { source, ownership: 'walk', 'kubernetes.io/fsGroup': '2000', ...more })
  const now = () => listTree(stage.fs, source)
  const left = () => (stage.noted.inodes as { left: Record<string, { count: number; examples: string[] }> }).left
  const attribute = (file: string) =>
    execFileSync(requireProgram('getfattr'), [
      '--absolute-names',
      '-n',
      'security.capability',
      '--only-values',
      file,
    ]).toString('base64')

  it('changes the group of FIFOs and sockets without opening them, and skips device nodes', async () => {
    makeTree(stage.fs, source, ['file a 0644'])
    // Opening this FIFO would hang: it has no other end.
    execFileSync('mkfifo', ['-m', '0600', `${source}/fifo`])
    execFileSync('mknod', ['-m', '0666', `${source}/null`, 'c', '1', '3'])
    const server = createServer().listen(`${source}/socket`)
    await new Promise((resolve) => server.once('listening', resolve))
    const before = now()
    await walk()
    server.close()
    expect(groups(now())).toMatchObject({ fifo: 2000, a: 2000, null: 0 })
    expect(modes(now())).toMatchObject({ fifo: '0600', null: '0666' })
    expect(now().null).toEqual(before.null)
    expect(left().device).toEqual({ count: 1, examples: ['null'] })
    expect(stage.noted.inodes).toMatchObject({ changed: 4 })
  })

  it('restores file capabilities after a chown, and when a restore changes the group back', async () => {
    makeTree(stage.fs, source, ['file ping 0755 5'])
    execFileSync(requireProgram('setfattr'), [
      '-n',
      'security.capability',
      '-v',
      `0s${CAPABILITY_ATTRIBUTE}`,
      `${source}/ping`,
    ])
    await walk({ restoreOnUnmount: 'true' })
    expect(groups(now()).ping).toBe(2000)
    expect(attribute(`${source}/ping`)).toBe(CAPABILITY_ATTRIBUTE)
    await stage.unmount('a')
    expect(groups(now()).ping).toBe(5)
    expect(attribute(`${source}/ping`)).toBe(CAPABILITY_ATTRIBUTE)
  })

  it('reports immutable files, changes all others, and retries the immutable ones in the next walk', async ({
    skip,
  }) => {
    makeTree(stage.fs, source, ['file fixed 0644', 'file free 0644'])
    try {
      execFileSync(requireProgram('chattr'), ['+i', `${source}/fixed`])
    } catch {
      skip('this file system has no immutable attribute before Linux 6.6')
    }
    try {
      await walk()
      expect(groups(now())).toMatchObject({ fixed: 0, free: 2000 })
      expect(left()['immutable or append-only']).toEqual({ count: 1, examples: ['fixed'] })
    } finally {
      execFileSync(requireProgram('chattr'), ['-i', `${source}/fixed`])
    }
    await stage.unmount('a')
    await walk({ fsGroupChangePolicy: 'Always' })
    expect(groups(now()).fixed).toBe(2000)
  })

  it('accepts names as bytes: newline, quotes, invalid UTF-8, 255 bytes', async () => {
    makeTree(stage.fs, source, ['file a 0644'])
    const names = ['with\nnewline', `'"\\$(x)`, '-rf', 'x'.repeat(255)].map((name) => Buffer.from(name))
    names.push(Buffer.from([0xff, 0xfe, 0x41]), Buffer.from([0xc3, 0x28]))
    const paths = names.map((name) => Buffer.concat([Buffer.from(`${source}/`), name]))
    for (const path of paths) stage.fs.writeFileSync(path, 'x')
    await walk({ restoreOnUnmount: 'true' })
    for (const path of paths) expect(stage.fs.lstatSync(path).gid).toBe(2000)
    await stage.unmount('a')
    for (const path of paths) expect(stage.fs.lstatSync(path).gid).toBe(0)
  })

  it('changes and restores paths far beyond PATH_MAX, with few open handles', async () => {
    const DEPTH = 400
    const name = 'n'.repeat(200)
    makeTree(stage.fs, source, ['file a 0644'])
    const { inodes } = stage.host
    // Every level is made relative to the one above: the whole path would be 80,000 bytes long.
    const script = `cd '${source}' && for i in $(seq ${DEPTH}); do mkdir ${name} && cd -P ${name} || exit 1; done; touch end`
    execFileSync('sh', ['-c', script])
    const handles = () => stage.fs.readdirSync('/proc/self/fd').length
    const before = handles()
    let most = 0
    stage.host.inodes = {
      ...inodes,
      readEntries(directory) {
        most = Math.max(most, handles())
        return inodes.readEntries(directory)
      },
    }
    await walk({ restoreOnUnmount: 'true' })
    expect(stage.noted.inodes).toMatchObject({ visited: DEPTH + 3, changed: DEPTH + 3, left: {} })
    await stage.unmount('a')
    expect(stage.noted.inodes).toMatchObject({ visited: DEPTH + 3, changed: DEPTH + 3, left: {} })
    // 32 directories on the way, two batches of at most 700 inodes, 32 inspected entries, the mount's own and the
    // journal's.
    expect(most - before).toBeLessThan(32 + 2 * 700 + 32 + 20)
    expect(handles()).toBe(before)
  })

  it('does not enter mounts inside the volume, including bind mounts of the same device', async () => {
    makeTree(stage.fs, source, ['dir inner 0755', 'dir same 0755', 'file a 0644'])
    makeTree(stage.fs, `${stage.top}/elsewhere`, ['file theirs 0644'])
    execFileSync('mount', ['-t', 'tmpfs', 'inner', `${source}/inner`])
    execFileSync('mount', ['--bind', `${stage.top}/elsewhere`, `${source}/same`])
    stage.fs.writeFileSync(`${source}/inner/x`, '')
    try {
      await walk({ submounts: 'hide' })
      expect(stage.fs.lstatSync(`${source}/inner/x`).gid).toBe(0)
      expect(groups(listTree(stage.fs, `${stage.top}/elsewhere`))).toEqual({ '.': 0, theirs: 0 })
      expect(stage.fs.lstatSync(`${source}/a`).gid).toBe(2000)
      // The mount shows the volume alone.
      expect(Object.keys(stage.shown('a')).sort()).toEqual(['.', 'a', 'inner', 'same'])
    } finally {
      execFileSync('umount', [`${source}/inner`, `${source}/same`])
    }
  })

  it('keeps access and modification times', async () => {
    makeTree(stage.fs, source, ['dir d 0755', 'file d/a 0644'])
    // A relative atime is renewed when older than the modification: only O_NOATIME keeps it.
    for (const path of ['', '/d', '/d/a']) stage.fs.utimesSync(`${source}${path}`, 1000, 2000)
    await walk()
    for (const path of ['', '/d', '/d/a']) {
      const { atimeMs, mtimeMs } = stage.fs.lstatSync(`${source}${path}`)
      expect({ path, atimeMs, mtimeMs }).toEqual({ path, atimeMs: 1_000_000, mtimeMs: 2_000_000 })
    }
  })

  it("does not spread a pod's mounts inside the volume to the source", async () => {
    makeTree(stage.fs, source, ['dir sub 0755'])
    await walk()
    execFileSync('mount', ['-t', 'tmpfs', 'pods', `${stage.podDirectory('a')}/sub`])
    stage.fs.writeFileSync(`${stage.podDirectory('a')}/sub/x`, '')
    expect(stage.fs.existsSync(`${source}/sub/x`)).toBe(false)
    await stage.unmount('a')
    expect(stage.layers('a')).toEqual([])
  })

  it('makes a mount with nosuid and nodev', async () => {
    makeTree(stage.fs, source, ['file a 0644'])
    await walk()
    expect(stage.layers('a')[0]?.options).toEqual(expect.arrayContaining(['rw', 'nosuid', 'nodev']))
  })
})
