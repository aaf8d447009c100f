import { execFileSync, spawn } from 'node:child_process'
import * as fs from 'node:fs'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { parseMountinfo, selectMountLayers } from '../../src/kernel/mount-table/mountinfo.ts'
import { cannotServe, FuseNode, readErrorAt, until } from '../helpers/fuse-node.ts'
import { addSkipReason } from '../helpers/needs.ts'

const cannot = cannotServe('bindfs')

describe.skipIf(cannot !== '')(addSkipReason('daemons of FUSE volumes', cannot), () => {
  let node: FuseNode
  let source: string
  let directory: string
  let options: Record<string, string>
  beforeEach(() => {
    node = new FuseNode(['fuse.bindfs'])
    source = `${node.volumes}/data`
    fs.mkdirSync(source)
    fs.writeFileSync(`${source}/a`, 'hello')
    directory = node.podDirectory('one')
    options = { 'kubernetes.io/fsType': 'fuse.bindfs', source }
  })

  const success = { status: 'Success' }
  const shown = () => fs.readFileSync(`${directory}/a`, 'utf8')

  it('a FUSE daemon whose mount was replaced is ended, although it is stopped and gets no request', async () => {
    await node.mount('one', options)
    const first = node.daemon('one')
    process.kill(first, 'SIGSTOP')
    expect(await node.mount('one', { ...options, mountOptions: 'attr_timeout=2' })).toEqual(success)
    await until(() => !node.processes().includes(first))
    const second = node.daemon('one')
    process.kill(second, 'SIGSTOP')
    expect(await node.mount('one', { source })).toEqual(success)
    await until(() => node.processes().length === 0)
    expect(shown()).toBe('hello')
  })

  it('a FUSE daemon whose mount was replaced keeps serving a container that uses it, until it is stopped', async () => {
    await node.mount('one', options)
    const daemon = node.daemon('one')
    const container = `${node.top}/container`
    fs.mkdirSync(container)
    execFileSync('mount', ['--bind', directory, container])
    expect(await node.mount('one', { source })).toEqual(success)
    expect(fs.readFileSync(`${container}/a`, 'utf8')).toBe('hello')
    expect(node.processes()).toEqual([daemon])
    expect(node.heal()).toMatchObject([{ state: 'healthy', action: 'none' }])
    expect(node.processes()).toEqual([daemon])
    process.kill(daemon, 'SIGSTOP')
    expect(node.heal()).toMatchObject([{ state: 'healthy', action: 'none' }])
    await until(() => node.processes().length === 0)
    // The kernel knows the attributes for a while.
    await until(() => readErrorAt(container) === 'ENOTCONN')
  })

  it('a FUSE daemon that responds slowly is ended with its replaced mount, and no written data is lost', async () => {
    // What it shows is served by another one, which stops for a while.
    const [inner, shownByInner] = [`${node.top}/inner`, `${node.volumes}/slow`]
    for (const path of [inner, shownByInner]) fs.mkdirSync(path)
    const slow = spawn('bindfs', ['-f', inner, shownByInner], { stdio: 'ignore' })
    onTestFinished(() => void slow.kill('SIGKILL'))
    await until(() => mountedAt(shownByInner))
    expect(await node.mount('one', { ...options, source: shownByInner })).toEqual(success)
    const daemon = node.daemon('one')
    const idle = callOf(daemon)
    slow.kill('SIGSTOP')
    const writer = spawn('sh', ['-c', 'echo written > "$0"', `${directory}/b`], { stdio: 'ignore' })
    const written = new Promise((done) => writer.once('exit', done))
    await until(() => callOf(daemon) !== idle)
    const unmounted = node.unmount('one')
    await new Promise((resolve) => setTimeout(resolve, 7000))
    expect(node.processes()).toContain(daemon)
    slow.kill('SIGCONT')
    expect([await unmounted, await written]).toEqual([success, 0])
    expect(fs.readFileSync(`${inner}/b`, 'utf8')).toBe('written\n')
    expect(node.logLines().filter(({ level }) => level === 'warn')).toEqual([])
    await until(() => node.processes().length === 0)
    execFileSync('umount', [shownByInner])
  })

  it('a FUSE daemon that serves a container keeps running when another daemon with a later mount hangs and is ended', async () => {
    fs.writeFileSync(
      node.config,
      fs.readFileSync(node.config, 'utf8').replace(/"helperTimeoutSeconds":\d+/, '"helperTimeoutSeconds":3'),
    )
    const [inner, shownByInner, container] = [`${node.top}/inner`, `${node.volumes}/slow`, `${node.top}/container`]
    for (const path of [inner, shownByInner, container]) fs.mkdirSync(path)
    const slow = spawn('bindfs', ['-f', inner, shownByInner], { stdio: 'ignore' })
    onTestFinished(() => void slow.kill('SIGKILL'))
    await until(() => mountedAt(shownByInner))
    await node.mount('one', options)
    const first = node.daemon('one')
    execFileSync('mount', ['--bind', directory, container])
    expect(await node.mount('one', { ...options, source: shownByInner })).toEqual(success)
    slow.kill('SIGSTOP')
    expect(await node.mount('one', { source })).toEqual(success)
    expect(node.logLines().filter(({ level }) => level === 'warn')).toMatchObject([
      { message: expect.stringContaining('has not responded for 3 s') },
    ])
    await until(() => node.processes().length === 1)
    expect(node.processes()).toEqual([first])
    expect(fs.readFileSync(`${container}/a`, 'utf8')).toBe('hello')
    slow.kill('SIGCONT')
    execFileSync('umount', [shownByInner])
  })
})

function mountedAt(path: string): boolean {
  return selectMountLayers(parseMountinfo(fs.readFileSync('/proc/self/mountinfo', 'utf8')), path).length > 0
}

/** The number of the system call that it is in. */
function callOf(pid: number): string {
  return fs.readFileSync(`/proc/${pid}/syscall`, 'utf8').split(' ', 1)[0] ?? ''
}
