import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { beforeEach, expect, it, onTestFinished } from 'vitest'
import { requireProgram } from '../helpers/needs.ts'
import { onKernelStages, type Stage } from '../helpers/stage.ts'
import { groups, listTree, makeTree } from '../helpers/tree.ts'
import { compile } from '../race/compile.ts'
import { makeSocket } from './socket.ts'

onKernelStages("an inode that a walk opens, by the kernel's report,", (open) => {
  let stage: Stage
  let source: string
  beforeEach(() => {
    stage = open()
    source = `${stage.top}/volumes/data`
    onTestFinished(() => stage.close())
  })

  async function watch(paths: readonly string[]): Promise<() => Promise<string[]>> {
    const child = spawn(compile('real-mounts/opened.c'), paths, { stdio: ['ignore', 'pipe', 'inherit'] })
    onTestFinished(() => {
      child.kill('SIGKILL')
    })
    let text = ''
    child.stdout.on('data', (data) => {
      text += data
    })
    await once(child.stdout, 'data')
    return async () => {
      child.kill('SIGTERM')
      await once(child, 'close')
      const [ready, ...opened] = text.split('\n').filter(Boolean)
      expect(ready).toBe('ready')
      return opened
    }
  }

  it('is no FIFO, socket, device, file or link target, neither in a walk nor in a restore', async () => {
    makeTree(stage.fs, `${stage.top}/outside`, ['file target 0600', 'dir directory 0700', 'file linked 0600'])
    makeTree(stage.fs, source, [
      'file plain 0640',
      'file suid 4755 5',
      'file tool 0755',
      'link out ../../outside/target',
    ])
    stage.fs.symlinkSync(`${stage.top}/outside/directory`, `${source}/away`)
    stage.fs.linkSync(`${stage.top}/outside/linked`, `${source}/linked`)
    execFileSync(requireProgram('setfattr'), [
      '-n',
      'security.capability',
      '-v',
      '0sAAAAAgAgAAAAAAAAAAAAAAAAAAA=',
      `${source}/tool`,
    ])
    execFileSync('mkfifo', [`${source}/fifo`])
    execFileSync('mknod', [`${source}/null`, 'c', '1', '3'])
    execFileSync('mknod', [`${source}/disk`, 'b', '7', '0'])
    await makeSocket(`${source}/socket`)

    const inside = ['plain', 'suid', 'tool', 'linked', 'fifo', 'null', 'disk', 'socket'].map(
      (name) => `${source}/${name}`,
    )
    const outside = ['target', 'directory'].map((name) => `${stage.top}/outside/${name}`)
    const end = await watch([...inside, ...outside])
    // The witness sees an open where there is one.
    stage.fs.closeSync(stage.fs.openSync(`${source}/null`, 'r'))

    const asked = { source, ownership: 'walk', 'kubernetes.io/fsGroup': '2000', restoreOnUnmount: 'true' }
    await stage.mount('a', asked)
    const walked = { fifo: 2000, socket: 2000, plain: 2000, tool: 2000, null: 0, disk: 0, linked: 0 }
    expect(groups(listTree(stage.fs, source))).toMatchObject(walked)
    expect(stage.noted.inodes).toMatchObject({ left: { device: { count: 2 }, symlink: { count: 2 } } })
    await stage.unmount('a')
    expect(await end()).toEqual([`${source}/null`])
  })
})
