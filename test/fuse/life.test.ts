import { execFileSync, spawn } from 'node:child_process'
import * as fs from 'node:fs'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { cannotServe, FuseNode, killDaemon, readErrorAt, squash, until } from '../helpers/fuse-node.ts'
import { BINARY } from '../helpers/kubelet-call.ts'
import { addSkipReason } from '../helpers/needs.ts'

const cannot = cannotServe('bindfs', 'squashfuse', 'mksquashfs')

describe.skipIf(cannot !== '')(addSkipReason('the life of a FUSE volume', cannot), () => {
  let node: FuseNode
  let source: string
  let directory: string
  let options: Record<string, string>
  beforeEach(() => {
    node = new FuseNode(['fuse.bindfs', 'fuse.squashfuse'])
    source = `${node.volumes}/data`
    fs.mkdirSync(source)
    fs.writeFileSync(`${source}/a`, 'hello', { mode: 0o640 })
    directory = node.podDirectory('one')
    options = { 'kubernetes.io/fsType': 'fuse.bindfs', source }
  })

  const success = { status: 'Success' }
  const shown = (pod = 'one') => fs.readFileSync(`${node.podDirectory(pod)}/a`, 'utf8')

  it("a FUSE volume shows the source and the pods' writes, and leaves nothing on the node after its unmount", async () => {
    expect(await node.mount('one', options)).toEqual(success)
    expect(shown()).toBe('hello')
    fs.writeFileSync(`${directory}/b`, 'written')
    expect(fs.readFileSync(`${source}/b`, 'utf8')).toBe('written')
    expect(node.staged()).toEqual([])
    expect(await node.unmount('one')).toEqual(success)
    expect(node.layers('one')).toEqual([])
    expect(fs.readdirSync(directory)).toEqual([])
    await until(() => node.processes().length === 0)
  })

  it('a FUSE volume opens no file of the node through a link that a pod puts in place of a directory', async () => {
    const secret = `${node.top}/secret`
    fs.mkdirSync(secret)
    fs.writeFileSync(`${secret}/x`, 'of the node')
    fs.mkdirSync(`${source}/d`)
    fs.writeFileSync(`${source}/d/x`, 'of the volume')
    expect(await node.mount('one', { ...options, mountOptions: 'entry_timeout=99999' })).toEqual(success)
    expect(fs.readFileSync(`${directory}/d/x`, 'utf8')).toBe('of the volume')
    fs.renameSync(`${source}/d`, `${source}/old`)
    fs.symlinkSync(secret, `${source}/d`)
    expect(() => fs.readFileSync(`${directory}/d/x`, 'utf8')).toThrow()
    expect(() => fs.appendFileSync(`${directory}/d/x`, 'by the pod')).toThrow()
    expect(fs.readFileSync(`${secret}/x`, 'utf8')).toBe('of the node')
  })

  it('a FUSE volume gets the group by mount options, and nothing changes on disk', async () => {
    await node.mount('one', { ...options, 'kubernetes.io/fsGroup': '4242', ownership: 'auto' })
    expect(fs.statSync(`${directory}/a`)).toMatchObject({ gid: 4242, mode: 0o100640 })
    expect(fs.statSync(`${source}/a`)).toMatchObject({ gid: 0, mode: 0o100640 })
    expect(node.status('one')).toMatchObject({ ownership: 'option', state: 'healthy', fsType: 'fuse.bindfs' })
  })

  it('a FUSE volume is refused with ownership "walk", and the reply names the reason', async () => {
    const asked = { ...options, 'kubernetes.io/fsGroup': '4242', ownership: 'walk' }
    const { status, message } = await node.mount('one', asked)
    expect(status).toBe('Failure')
    expect(message).toMatch(/its daemon decides about groups.*"auto"/)
    expect(node.processes()).toEqual([])
  })

  it('a FUSE volume is refused with ownership "idmap" if its daemon does not support it', async () => {
    const asked = { ...options, 'kubernetes.io/fsGroup': '4242', ownership: 'idmap' }
    const { status, message } = await node.mount('one', asked)
    expect([status, message]).toEqual(['Failure', expect.stringMatching(/cannot mount .* idmapped/)])
    expect([node.layers('one'), node.staged()]).toEqual([[], []])
    await until(() => node.processes().length === 0)
  })

  it('a FUSE volume shows an image file, read-only', async () => {
    squash(source, `${node.volumes}/image`)
    const image = { 'kubernetes.io/fsType': 'fuse.squashfuse', source: `${node.volumes}/image` }
    expect(await node.mount('one', { ...image, 'kubernetes.io/readwrite': 'ro' })).toEqual(success)
    expect(shown()).toBe('hello')
    expect(() => fs.writeFileSync(`${directory}/b`, '')).toThrow('EROFS')
    expect(await node.unmount('one')).toEqual(success)
  })

  it('a FUSE volume is not changed by a second identical call', async () => {
    await node.mount('one', options)
    const before = { daemon: node.daemon('one'), layers: node.layers('one') }
    expect(await node.mount('one', options)).toEqual(success)
    expect({ daemon: node.daemon('one'), layers: node.layers('one') }).toEqual(before)
  })

  it('a FUSE volume keeps running after the call and its parent were killed', async () => {
    const call = `"${BINARY}" mount "$0" "$1"; kill -9 $$`
    const env = { MODEKEEP_CONFIG: node.config }
    const parent = spawn('sh', ['-c', call, directory, JSON.stringify(options)], { env, detached: true })
    let text = ''
    parent.stdout.on('data', (data) => {
      text += data
    })
    // "close" comes when no process has the pipe open.
    const signal = await new Promise((done) => parent.on('close', (_, name) => done(name)))
    expect(signal).toBe('SIGKILL')
    expect(JSON.parse(text)).toEqual(success)
    expect(shown()).toBe('hello')
    const stat = fs
      .readFileSync(`/proc/${node.daemon('one')}/stat`, 'utf8')
      .replace(/.*\) /, '')
      .split(' ')
    // pid, ppid, pgrp, session: its own, and not the call's.
    expect(Number(stat[3])).not.toBe(parent.pid)
    expect(fs.readlinkSync(`/proc/${node.daemon('one')}/fd/1`)).toBe('/dev/null')
  })

  it('a FUSE volume is mounted again by heal after its daemon has died', async () => {
    await node.mount('one', options)
    await killDaemon(node, 'one')
    expect(node.status('one')).toMatchObject({ daemon: { pid: null, state: 'dead' } })
    expect(node.heal()).toMatchObject([
      { state: 'stale', action: 'replaced', reason: 'what is mounted does not respond' },
    ])
    expect(shown()).toBe('hello')
    expect(node.status('one')).toMatchObject({ state: 'healthy', daemon: { state: 'alive' } })
    expect(node.layers('one').map(({ fsType }) => fsType)).toEqual(['tmpfs', 'fuse'])
  })

  it('a FUSE volume is mounted again by heal after its daemon has died while its attributes are cached', async () => {
    await node.mount('one', { ...options, mountOptions: 'attr_timeout=600' })
    expect(readErrorAt(directory)).toBe('')
    process.kill(node.daemon('one'), 'SIGKILL')
    await until(() => readErrorAt(`${directory}/a`, fs.readFileSync) === 'ENOTCONN')
    expect(readErrorAt(directory)).toBe('')
    expect(node.heal()).toMatchObject([{ state: 'stale', action: 'replaced' }])
    expect(shown()).toBe('hello')
  })

  it('a FUSE volume is mounted again by heal --watch after its daemon has died, although the mount table is unchanged', async () => {
    await node.mount('one', options)
    const env = { MODEKEEP_CONFIG: node.config }
    const watching = spawn(BINARY, ['heal', '--watch'], { env, stdio: ['ignore', 'ignore', 'inherit'] })
    onTestFinished(() => void watching.kill('SIGKILL'))
    // It is at work when it has repaired something.
    execFileSync('umount', ['--lazy', directory])
    await until(() => node.layers('one').length === 2)
    for (let deaths = 0; deaths < 3; deaths++) {
      const daemon = node.daemon('one')
      process.kill(daemon, 'SIGKILL')
      await until(() => readErrorAt(`${directory}/a`) === '' && node.daemon('one') !== daemon)
      expect(shown()).toBe('hello')
    }
    watching.kill('SIGTERM')
    expect(await new Promise((done) => watching.once('exit', done))).toBe(0)
  })

  it('a FUSE volume is mounted again by the next call after its daemon has died', async () => {
    await node.mount('one', options)
    await killDaemon(node, 'one')
    expect(await node.mount('one', options)).toEqual(success)
    expect(shown()).toBe('hello')
  })

  it('a FUSE volume is unmounted after its daemon has died', async () => {
    await node.mount('one', options)
    await killDaemon(node, 'one')
    expect(await node.unmount('one')).toEqual(success)
    expect([node.layers('one'), readErrorAt(directory), node.staged()]).toEqual([[], '', []])
  })

  it('a FUSE volume blocks neither status nor heal nor other mounts while its daemon hangs, and can be unmounted', async () => {
    await node.mount('one', options)
    await node.mount('two', options)
    const daemon = node.daemon('one')
    process.kill(daemon, 'SIGSTOP')
    expect(node.status('one')).toMatchObject({ daemon: { pid: daemon, state: 'stopped' } })
    expect(node.heal().map(({ state }) => state)).toEqual(['healthy', 'healthy'])
    expect(await node.mount('one', options)).toEqual(success)
    expect(await node.unmount('two')).toEqual(success)
    expect(await node.mount('three', options)).toEqual(success)
    expect(await node.unmount('one')).toEqual(success)
    expect(node.layers('one')).toEqual([])
    await until(() => !node.processes().includes(daemon))
    expect(shown('three')).toBe('hello')
  })

  it('a FUSE volume is replaced when its options change, also if its daemon hangs', async () => {
    await node.mount('one', options)
    process.kill(node.daemon('one'), 'SIGSTOP')
    expect(await node.mount('one', { ...options, mountOptions: 'attr_timeout=2' })).toEqual(success)
    expect(fs.readFileSync(`${directory}/a`, 'utf8')).toBe('hello')
    expect(node.layers('one').map(({ fsType }) => fsType)).toEqual(['tmpfs', 'fuse'])
  })

  it('a FUSE volume keeps root from writing to the disk below its mount point after any kind of unmount', async () => {
    await node.mount('one', options)
    await killDaemon(node, 'one')
    const write = () => fs.writeFileSync(`${directory}/lost`, 'data')
    expect(write).toThrow('ENOTCONN')
    execFileSync('umount', ['--lazy', directory])
    expect(write).toThrow('EROFS')
    expect(() => fs.mkdirSync(`${directory}/lost`)).toThrow('EROFS')
    // As a pod that is started now would have it.
    fs.mkdirSync(`${node.top}/container`)
    execFileSync('mount', ['--bind', directory, `${node.top}/container`])
    expect(() => fs.writeFileSync(`${node.top}/container/lost`, 'data')).toThrow('EROFS')
    expect(node.heal()).toMatchObject([{ state: 'missing', action: 'mounted' }])
    expect(shown()).toBe('hello')
    expect(await node.unmount('one')).toEqual(success)
    expect(fs.readdirSync(directory)).toEqual([])
  })

  it('a FUSE volume replaces a mount of another type, and is replaced by such a mount', async () => {
    await node.mount('one', { source })
    expect(await node.mount('one', options)).toEqual(success)
    expect(node.layers('one').map(({ fsType }) => fsType)).toEqual(['tmpfs', 'fuse'])
    expect(await node.mount('one', { source })).toEqual(success)
    expect(shown()).toBe('hello')
    expect(node.status('one')).toMatchObject({ state: 'healthy', daemon: null })
    expect(await node.unmount('one')).toEqual(success)
    expect(node.layers('one')).toEqual([])
    await until(() => node.processes().length === 0)
  })

  it('a FUSE volume shows the source that was checked, also if its name leads to another directory now', async () => {
    fs.symlinkSync(source, `${node.volumes}/link`)
    const { message } = await node.mount('one', { ...options, source: `${node.volumes}/link` })
    expect(message).toMatch(/symbolic link/)
    await node.mount('one', options)
    fs.renameSync(source, `${node.volumes}/moved`)
    fs.mkdirSync(source)
    expect(shown()).toBe('hello')
  })

  it('a FUSE volume is refused if the configuration does not allow its program or source', async () => {
    const sshfs = await node.mount('one', { ...options, 'kubernetes.io/fsType': 'fuse.sshfs', source: 'a@b:/c' })
    expect(sshfs.message).toMatch(/does not have its source, fsType fuse\.sshfs;/)
    expect((await node.mount('one', { ...options, source: '/etc' })).message).toMatch(/does not have its source;/)
    expect((await node.mount('one', { ...options, source: node.state })).message).toMatch(
      /does not have its source;|own records/,
    )
    expect((await node.mount('one', { ...options, mountOptions: 'resolve-symlinks' })).message).toMatch(/takes/)
  })

  it('a FUSE volume leaves neither mount, process nor record if its program fails', async () => {
    fs.writeFileSync(`${node.volumes}/image`, 'no image')
    const image = { 'kubernetes.io/fsType': 'fuse.squashfuse', source: `${node.volumes}/image` }
    expect((await node.mount('one', image)).status).toBe('Failure')
    expect([node.layers('one'), node.staged(), node.processes()]).toEqual([[], [], []])
    expect(fs.readdirSync(`${node.state}/mounts`)).toEqual([])
  })
})
