import { execFileSync } from 'node:child_process'
import { dirname } from 'node:path'
import { beforeEach, expect, it, onTestFinished } from 'vitest'
import { listReadableMountRecords } from '../../src/state/mount-record.ts'
import { onKernelStages, type Stage } from '../helpers/stage.ts'
import { groups, listTree, makeTree } from '../helpers/tree.ts'
import { makeSocket } from './socket.ts'

onKernelStages('a subPath', (open) => {
  let stage: Stage
  let source: string
  let directory: string
  beforeEach(() => {
    stage = open()
    source = `${stage.top}/volumes/data`
    directory = stage.podDirectory('a')
    onTestFinished(() => stage.close())
    makeTree(stage.fs, source, ['file top 0644', 'dir sub 0755', 'file sub/inner 0644', 'dir sub/deep 0755'])
  })

  const read = () => stage.fs.readFileSync(directory, 'utf8')
  const isEmptyDirectory = () => stage.fs.readdirSync(directory).length === 0
  const inode = (path: string) => stage.fs.statSync(path).ino
  const stateLeft = () => listReadableMountRecords(stage)

  it('shows only a directory of the source', async () => {
    await stage.mount('a', { source, subPath: 'sub' })
    expect(Object.keys(stage.shown('a')).sort()).toEqual(['.', 'deep', 'inner'])
    expect(inode(directory)).toBe(inode(`${source}/sub`))
  })

  it("that is a file is mounted in place of kubelet's directory, and an unmount leaves a directory", async () => {
    await stage.mount('a', { source, subPath: 'sub/inner' })
    expect(read()).toBe('sub/inner')
    expect(inode(directory)).toBe(inode(`${source}/sub/inner`))
    expect(stage.layers('a')).toHaveLength(1)
    await stage.mount('a', { source, subPath: 'sub/inner' })
    expect(stage.noted.decision).toBe('ready')
    await stage.unmount('a')
    expect(stage.layers('a')).toEqual([])
    expect(isEmptyDirectory()).toBe(true)
    expect(stage.fs.statSync(directory).mode & 0o7777).toBe(0o750)
    expect(stateLeft()).toEqual([])
    stage.fs.rmdirSync(directory)
  })

  it('may be a socket or a FIFO', async () => {
    await makeSocket(`${source}/sub/socket`)
    execFileSync('mkfifo', [`${source}/fifo`])
    await stage.mount('a', { source, subPath: 'sub/socket' })
    expect(stage.fs.statSync(directory).isSocket()).toBe(true)
    await stage.mount('a', { source, subPath: 'fifo' })
    expect(stage.fs.statSync(directory).isFIFO()).toBe(true)
    await stage.unmount('a')
    expect(isEmptyDirectory()).toBe(true)
  })

  it('is replaced by a subPath of another type, and back', async () => {
    await stage.mount('a', { source, subPath: 'sub' })
    await stage.mount('a', { source, subPath: 'top' })
    expect(read()).toBe('top')
    await stage.mount('a', { source })
    expect(stage.fs.existsSync(`${directory}/sub/inner`)).toBe(true)
    expect(stage.layers('a')).toHaveLength(1)
  })

  it("that is missing or leads out is refused, and kubelet's directory stays", async () => {
    stage.fs.symlinkSync('/etc', `${source}/out`)
    stage.fs.symlinkSync('../..', `${source}/up`)
    for (const subPath of ['none', 'sub/none/x', 'out', 'out/passwd', 'up/state', 'top/x']) {
      await expect(stage.mount('a', { source, subPath })).rejects.toThrow(/subPath/)
      expect(isEmptyDirectory()).toBe(true)
      expect(stage.layers('a')).toEqual([])
      expect(stateLeft()).toEqual([])
    }
  })

  it("whose mount fails at the last step leaves kubelet's directory", async () => {
    const { mounts } = stage.host
    stage.host.mounts = {
      ...mounts,
      attach() {
        throw new Error('no attach today')
      },
    }
    await expect(stage.mount('a', { source, subPath: 'top' })).rejects.toThrow('no attach today')
    stage.host.mounts = mounts
    expect(isEmptyDirectory()).toBe(true)
    expect(stateLeft()).toEqual([])
  })

  it('of another type whose mount fails restores the old mount', async () => {
    const { mounts } = stage.host
    for (const [old, next] of [
      ['sub', 'top'],
      ['top', 'sub'],
    ] as const) {
      await stage.mount('a', { source, subPath: old })
      let attached = 0
      stage.host.mounts = {
        ...mounts,
        attach(tree, target) {
          if (attached++ === 0) throw new Error('not today')
          mounts.attach(tree, target)
        },
      }
      await expect(stage.mount('a', { source, subPath: next })).rejects.toThrow('not today')
      stage.host.mounts = mounts
      expect(inode(directory)).toBe(inode(`${source}/${old}`))
      expect(stage.layers('a')).toHaveLength(1)
      await stage.unmount('a')
    }
  })

  it('of another type restores the old mount if its detachment fails half-way', async () => {
    const { inodes, mounts } = stage.host
    await stage.mount('a', { source, subPath: 'sub' })
    let isGone = false
    stage.host.mounts = {
      ...mounts,
      detach(parent, name) {
        mounts.detach(parent, name)
        isGone = true
      },
    }
    stage.host.inodes = {
      ...inodes,
      statMountPoint(handle, name) {
        if (isGone) {
          isGone = false
          throw new Error('not today')
        }
        return inodes.statMountPoint(handle, name)
      },
    }
    await expect(stage.mount('a', { source, subPath: 'top' })).rejects.toThrow('not today')
    Object.assign(stage.host, { inodes, mounts })
    expect(inode(directory)).toBe(inode(`${source}/sub`))
    expect(stage.layers('a')).toHaveLength(1)
  })

  it("for which no file can be created leaves kubelet's directory", async () => {
    const { inodes } = stage.host
    stage.host.inodes = {
      ...inodes,
      createFile() {
        throw new Error('no space')
      },
    }
    await expect(stage.mount('a', { source, subPath: 'top' })).rejects.toThrow('no space')
    stage.host.inodes = inodes
    expect(isEmptyDirectory()).toBe(true)
  })

  it('of a file is mounted again after a reboot, on the remaining file', async () => {
    await stage.mount('a', { source, subPath: 'top' })
    stage.reboot()
    expect(stage.fs.statSync(directory).isFile()).toBe(true)
    await stage.mount('a', { source, subPath: 'top' })
    expect(read()).toBe('top')
    stage.reboot()
    await stage.mount('a', { source })
    expect(stage.fs.existsSync(`${directory}/top`)).toBe(true)
    stage.reboot()
    await stage.unmount('a')
    expect(isEmptyDirectory()).toBe(true)
  })

  it('does not replace a file that has content', async () => {
    stage.fs.mkdirSync(dirname(directory), { recursive: true })
    stage.fs.writeFileSync(directory, 'of a user')
    await expect(stage.mount('a', { source, subPath: 'top' })).rejects.toThrow(/is a link or a file/)
    await stage.unmount('a')
    expect(read()).toBe('of a user')
    stage.fs.rmSync(directory)
  })

  it('limits a walk and a restore to the inodes below the subPath', async () => {
    const asked = { ownership: 'walk', restoreOnUnmount: 'true', 'kubernetes.io/fsGroup': '2000' }
    await stage.mount('a', { source, subPath: 'sub', ...asked })
    expect(groups(listTree(stage.fs, source))).toEqual({
      '.': 0,
      top: 0,
      sub: 2000,
      'sub/inner': 2000,
      'sub/deep': 2000,
    })
    await expect(stage.mount('b', { source, ownership: 'walk', 'kubernetes.io/fsGroup': '3000' })).rejects.toThrow(
      /belongs to group 2000/,
    )
    await stage.unmount('a')
    expect(new Set(Object.values(groups(listTree(stage.fs, source))))).toEqual(new Set([0]))
  })

  it('of a file cannot be walked, and the message names the remedy', async () => {
    const asked = { source, subPath: 'top', ownership: 'walk', 'kubernetes.io/fsGroup': '2000' }
    await expect(stage.mount('a', asked)).rejects.toThrow(/is not a directory.*use ownership "idmap"/)
    expect(isEmptyDirectory()).toBe(true)
  })

  it('of a file shows the group by a mapping', async () => {
    const asked = { source, subPath: 'top', ownership: 'idmap', 'kubernetes.io/fsGroup': '2000' }
    await stage.mount('a', asked)
    expect(stage.fs.statSync(directory).gid).toBe(2000)
    expect(stage.fs.statSync(`${source}/top`).gid).toBe(0)
  })
})
