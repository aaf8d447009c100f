import { execFileSync } from 'node:child_process'
import { Worker } from 'node:worker_threads'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { workerPool } from '../../driver/worker-pool.ts'
import type { WalkReport } from '../../src/ownership/walk/report.ts'
import { needed } from '../helpers/needs.ts'
import { onKernelStages, type Stage } from '../helpers/stage.ts'
import { groups, letTicksPass, listTree, makeTree, modes } from '../helpers/tree.ts'

onKernelStages('a walk by several threads', (open) => {
  let stage: Stage
  let source = ''
  beforeEach(() => {
    stage = open()
    source = `${stage.top}/volumes/data`
    stage.workerPool = { ...(workerPool() ?? { spawn: () => expect.unreachable() }), size: 3, from: 10 }
  })
  afterEach(() => stage.close())

  const asked = { source, ownership: 'walk', 'kubernetes.io/fsGroup': '2000', restoreOnUnmount: 'true' }
  const mount = (more: Record<string, string> = {}) => stage.mount('a', { ...asked, source, ...more })
  const report = () => stage.noted.inodes as WalkReport
  const now = () => listTree(stage.fs, source)
  const handles = () => stage.fs.readdirSync('/proc/self/fd').length

  /** Directories of several sizes, one with most of the files, all three kinds of privileges and a chain of directories. */
  function arrange(): ReturnType<typeof now> {
    makeTree(stage.fs, source, [
      'file suid 4755',
      'file sgid 2755 7',
      'link out ../../elsewhere',
      `dir ${'deep/'.repeat(50)}end 0700`,
      ...Array.from({ length: 3000 }, (_, index) => `file many/${index} 0640`),
      ...Array.from({ length: 900 }, (_, index) => `file some/${index % 90}/${index} 0600 5`),
    ])
    return now()
  }

  it('gives every inode its group once, and puts everything back', async () => {
    const before = arrange()
    const open = handles()
    await mount()
    const total = Object.keys(before).length
    expect(report()).toMatchObject({ visited: total, changed: total - 1, alreadyRight: 0 })
    expect(report().left).toEqual({ symlink: { count: 1, examples: ['out'] } })
    const { out, ...others } = groups(now())
    expect(out).toBe(0)
    expect(new Set(Object.values(others))).toEqual(new Set([2000]))
    await stage.unmount('a')
    expect(report()).toMatchObject({ visited: total, changed: total - 1 })
    expect(groups(now())).toEqual(groups(before))
    expect(modes(now())).toEqual(modes(before))
    expect(handles()).toBe(open)
  })

  it('finds all of it right the second time, and changes nothing', async () => {
    arrange()
    await mount({ restoreOnUnmount: 'false' })
    await stage.unmount('a')
    const walked = now()
    await mount({ restoreOnUnmount: 'false', fsGroupChangePolicy: 'Always' })
    expect(report()).toMatchObject({ changed: 0, alreadyRight: Object.keys(walked).length - 1 })
    expect(now()).toEqual(walked)
  })

  it('gives the volume to another group, and the first group is not what is restored', async () => {
    const before = arrange()
    await mount({ restoreOnUnmount: 'false' })
    await stage.unmount('a')
    await mount({ 'kubernetes.io/fsGroup': '3000' })
    expect(report()).toMatchObject({ changed: Object.keys(before).length - 1 })
    expect(groups(now())['many/17']).toBe(3000)
    await stage.unmount('a')
    expect(groups(now())).toEqual(groups(before))
    expect(modes(now())).toEqual(modes(before))
  })

  it('changes a file with names in many directories once, when all are inside', async () => {
    const names = Array.from({ length: 40 }, (_, index) => `d${index}`)
    makeTree(stage.fs, source, [
      ...names.flatMap((name) => Array.from({ length: 60 }, (_, index) => `file ${name}/${index} 0640`)),
      'file whole 0640',
      'file shared 0640',
      ...names.flatMap((name) => [`hard ${name}/whole whole`, `hard ${name}/shared shared`]),
    ])
    stage.fs.linkSync(`${source}/shared`, `${stage.top}/elsewhere`)
    await letTicksPass()
    await mount()
    expect(groups(now())).toMatchObject({ whole: 2000, shared: 0, 'd7/whole': 2000 })
    expect(report().left['linked outside the volume']?.count).toBe(1)
    expect(report().changed).toBe(2400 + 40 + 1 + 1)
    await stage.unmount('a')
    expect(new Set(Object.values(groups(now())))).toEqual(new Set([0]))
  })

  it('ends with the first error of a thread, mounts nothing, and the next call goes on', async () => {
    const before = arrange()
    const { spawn, ...rest } = stage.workerPool ?? expect.unreachable()
    // Closed handles: what one thread gets is none of its volume's.
    stage.workerPool = {
      ...rest,
      spawn: (data) => spawn({ ...data, inside: data.index === 1 ? (undefined as never) : data.inside }),
    }
    // On a busy machine the others may have done all of it before that thread has begun.
    let error: unknown
    for (let round = 0; error === undefined && round < 50; round++) {
      error = await mount().catch((thrown) => thrown)
      if (error === undefined) await stage.unmount('a')
    }
    expect(error).toBeInstanceOf(Error)
    expect(stage.layers('a')).toEqual([])
    stage.workerPool = { ...rest, spawn }
    await mount()
    expect(groups(now())['some/1/1']).toBe(2000)
    await stage.unmount('a')
    expect(groups(now())).toEqual(groups(before))
    expect(modes(now())).toEqual(modes(before))
  })

  it('leaves what it may not change, whichever thread meets it', async () => {
    arrange()
    if (execFileSync('stat', ['-f', '-c', '%T', source], { encoding: 'utf8' }).startsWith('tmpfs')) {
      // tmpfs has no immutable files: a FIFO is met and given its group without being opened.
      execFileSync('mkfifo', [`${source}/some/7/fifo`])
      await mount()
      expect(groups(now())['some/7/fifo']).toBe(2000)
      return
    }
    const still = ['many/11', 'some/3/3', 'some/5/5']
    execFileSync(needed('chattr'), ['+i', ...still.map((name) => `${source}/${name}`)])
    try {
      await mount()
      expect(report().left['immutable or append-only']?.count).toBe(3)
      expect(still.map((name) => groups(now())[name])).toEqual([0, 5, 5])
    } finally {
      execFileSync(needed('chattr'), ['-i', ...still.map((name) => `${source}/${name}`)])
    }
  })

  it('fails and does not wait for a thread that has ended without a word', async () => {
    arrange()
    const { spawn, ...rest } = stage.workerPool ?? expect.unreachable()
    stage.workerPool = {
      ...rest,
      spawn: (data) => (data.index === 1 ? new Worker('process.exit(3)', { eval: true }) : spawn(data)),
    }
    await expect(mount()).rejects.toThrow('ended early')
    expect(stage.layers('a')).toEqual([])
  })

  it.each([0, 1])('goes on with the %i threads that could be started', async (started) => {
    const before = arrange()
    const open = handles()
    const { spawn, ...rest } = stage.workerPool ?? expect.unreachable()
    stage.workerPool = {
      ...rest,
      spawn(data) {
        if (data.index >= started) throw new Error('no more processes')
        return spawn(data)
      },
    }
    await mount()
    expect(report()).toMatchObject({ visited: Object.keys(before).length })
    expect(groups(now())['some/1/1']).toBe(2000)
    await stage.unmount('a')
    expect(groups(now())).toEqual(groups(before))
    expect(handles()).toBe(open)
  })
})
