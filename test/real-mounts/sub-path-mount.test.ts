import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import * as fs from 'node:fs'
import { connect } from 'node:net'
import { beforeEach, expect, it, onTestFinished } from 'vitest'
import type { Handle } from '../../src/kernel/host.ts'
import { openSubPath } from '../../src/kernel/path/open-sub-path.ts'
import { onKernelStages, type Stage } from '../helpers/stage.ts'
import { makeTree } from '../helpers/tree.ts'
import { identity, identityAt } from '../kernel/path/ways.ts'
import { makeSocket } from './socket.ts'

onKernelStages('a resolved subPath', (open) => {
  let stage: Stage
  let source: string
  let target: string
  let root: Handle
  beforeEach(() => {
    stage = open()
    onTestFinished(() => stage.close())
    source = `${stage.top}/volumes/data`
    target = `${stage.top}/target`
    makeTree(fs, source, ['file d/f 0644', 'link l d/f'])
    makeTree(fs, stage.top, ['file target 0640', 'dir directory 0750'])
    root = stage.host.inodes.openLinkFree(source)
    onTestFinished(() => stage.host.inodes.close(root))
  })

  /** Mounts what a handle holds, and nothing that any name leads to; until the test ends. */
  function mountOn(handle: Handle, path: string): void {
    const { inodes, mounts } = stage.host
    const [tree, on] = [mounts.cloneTree(handle), inodes.openLinkFree(path)]
    try {
      mounts.setFlags(tree, { set: 0, clear: 0 })
      mounts.attach(tree, on)
      onTestFinished(() => void execFileSync('umount', [path]))
    } finally {
      for (const one of [handle, tree, on]) inodes.close(one)
    }
  }

  it('that is a file is mounted on a file, also after a rename', () => {
    const handle = openSubPath(stage.host.inodes, root, 'l')
    const resolved = identity(stage.host.inodes, handle)
    fs.renameSync(`${source}/d`, `${source}/e`)
    makeTree(fs, source, ['file d/f 0600'])
    mountOn(handle, target)
    expect(identityAt(stage.host, target)).toBe(resolved)
    fs.writeFileSync(target, 'through the mount')
    expect(fs.readFileSync(`${source}/e/f`, 'utf8')).toBe('through the mount')
    expect(fs.readFileSync(`${source}/d/f`, 'utf8')).toBe('d/f')
  })

  it('that is a socket is mounted on a file, and accepts connections', async () => {
    await makeSocket(`${source}/d/socket`)
    mountOn(openSubPath(stage.host.inodes, root, 'd/socket'), target)
    expect(fs.lstatSync(target).isSocket()).toBe(true)
    const connection = connect(target)
    await once(connection, 'connect')
    connection.destroy()
  })

  it('that is a FIFO is mounted on a file, and passes data', () => {
    execFileSync('mkfifo', [`${source}/d/fifo`])
    mountOn(openSubPath(stage.host.inodes, root, 'd/fifo'), target)
    expect(fs.lstatSync(target).isFIFO()).toBe(true)
    const reader = fs.openSync(`${source}/d/fifo`, fs.constants.O_RDONLY | fs.constants.O_NONBLOCK)
    try {
      fs.writeFileSync(target, 'through the mount')
      expect(fs.readFileSync(reader, 'utf8')).toBe('through the mount')
    } finally {
      fs.closeSync(reader)
    }
  })

  it('below another mount is mounted without the mounts below it', () => {
    makeTree(fs, source, ['dir m 0755'])
    const mount = (path: string) => {
      execFileSync('mount', ['-t', 'tmpfs', 'inner', path])
      onTestFinished(() => void execFileSync('umount', [path]))
    }
    mount(`${source}/m`)
    makeTree(fs, `${source}/m`, ['file part/own 0644', 'dir part/below 0755'])
    mount(`${source}/m/part/below`)
    makeTree(fs, `${source}/m/part/below`, ['file theirs 0644'])
    mountOn(openSubPath(stage.host.inodes, root, 'm/part'), `${stage.top}/directory`)
    expect(fs.readdirSync(`${stage.top}/directory`, { recursive: true })).toEqual(['below', 'own'])
  })

  it('is not mounted after it was deleted, and neither is what its name leads to', () => {
    const file = openSubPath(stage.host.inodes, root, 'l')
    const directory = openSubPath(stage.host.inodes, root, 'd')
    fs.rmSync(`${source}/d`, { recursive: true })
    fs.symlinkSync('/etc', `${source}/d`)
    const before = [identityAt(stage.host, target), identityAt(stage.host, `${stage.top}/directory`)]
    expect(() => mountOn(file, target)).toThrow('move_mount the mount directory: ENOENT')
    expect(() => mountOn(directory, `${stage.top}/directory`)).toThrow('move_mount the mount directory: ENOENT')
    expect([identityAt(stage.host, target), identityAt(stage.host, `${stage.top}/directory`)]).toEqual(before)
  })

  it('is not mounted on a target of another type', () => {
    expect(() => mountOn(openSubPath(stage.host.inodes, root, 'l'), `${stage.top}/directory`)).toThrow('EINVAL')
    expect(() => mountOn(openSubPath(stage.host.inodes, root, 'd'), target)).toThrow('EINVAL')
  })
})
