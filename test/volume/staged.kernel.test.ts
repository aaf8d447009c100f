import { execFileSync, spawn } from 'node:child_process'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { DEFAULT_CONFIG } from '../../src/config/defaults.ts'
import { HELPER_MARK_VARIABLE } from '../../src/kernel/helpers.ts'
import { linuxHost } from '../../src/kernel/linux/index.ts'
import type { MountContext } from '../../src/volume/kind/kind.ts'
import { mountOnStage, unmountStaleStages } from '../../src/volume/kind/staged.ts'
import { unmountBelow } from '../helpers/kubelet-pod.ts'
import { addSkipReason, cannotMountWith } from '../helpers/needs.ts'

const isRoot = process.getuid?.() === 0

describe.skipIf(!isRoot)(addSkipReason('the mount of a helper program', cannotMountWith()), () => {
  let top: string
  let context: MountContext
  beforeEach(() => {
    top = fs.mkdtempSync(`${tmpdir()}/modekeep-staged-`)
    execFileSync('mount', ['-t', 'tmpfs', '--make-shared', 'test', top])
    context = { host: linuxHost, stateDir: `${top}/state`, staging: 'mine' } as MountContext
  })
  afterEach(() => {
    unmountBelow(top)
    execFileSync('umount', ['--lazy', top])
    fs.rmdirSync(top)
  })

  const sweep = (stateDir = context.stateDir) =>
    unmountStaleStages({
      host: linuxHost,
      config: { ...DEFAULT_CONFIG, stateDir },
      warn: (message) => expect.unreachable(message),
    })
  const table = () => fs.readFileSync('/proc/self/mountinfo', 'utf8')
  const left = () => [fs.readdirSync(`${top}/state/staging`), table().includes(`${top}/state`)]
  const mountOn = async (directory: string) => {
    execFileSync('mount', ['-t', 'tmpfs', 'helper', directory])
    fs.writeFileSync(`${directory}/a`, 'hello')
  }

  it('the mount of a helper program is returned detached, and its staging directory is removed', async () => {
    const tree = await mountOnStage(context, mountOn)
    expect(left()).toEqual([[], false])
    fs.mkdirSync(`${top}/target`)
    const target = linuxHost.inodes.openTrusted(`${top}/target`)
    linuxHost.mounts.attach(tree, target)
    expect(fs.readFileSync(`${top}/target/a`, 'utf8')).toBe('hello')
    linuxHost.inodes.close(target)
    linuxHost.inodes.close(tree)
  })

  it('the mount of a helper program waits while another call checks its staging directory', async () => {
    fs.mkdirSync(`${top}/state/staging`, { recursive: true })
    const sweeps = linuxHost.tryLock(`${top}/state/staging/mine.lock`)
    setTimeout(() => sweeps?.release(true), 20)
    linuxHost.inodes.close(await mountOnStage(context, mountOn))
    expect(sweeps).toBeDefined()
    expect(left()).toEqual([[], false])
  })

  it('a staging mount is not visible in other mount namespaces, even if mounts of the state directory propagate', async () => {
    const peer = `${top}-peer`
    fs.mkdirSync(peer)
    execFileSync('mount', ['--bind', top, peer])
    try {
      const tree = await mountOnStage(context, async (directory) => {
        await mountOn(directory)
        expect(fs.existsSync(`${directory}/a`)).toBe(true)
        expect(table()).not.toMatch(new RegExp(` ${peer}/\\S+ .* helper `))
      })
      linuxHost.inodes.close(tree)
      expect(table()).not.toContain(`${peer}/`)
    } finally {
      execFileSync('umount', ['--recursive', '--lazy', peer])
      fs.rmdirSync(peer)
    }
  })

  it('a staging directory has the opened source and files that only root can read, until the call ends', async () => {
    fs.mkdirSync(`${top}/source`)
    fs.writeFileSync(`${top}/source/b`, 'data')
    const source = linuxHost.inodes.openTrusted(`${top}/source`)
    const tree = await mountOnStage(context, async (directory, stage) => {
      fs.renameSync(`${top}/source`, `${top}/moved`)
      const shown = stage.show(source, true)
      expect(fs.readFileSync(`${shown}/b`, 'utf8')).toBe('data')
      expect(() => fs.writeFileSync(`${shown}/c`, '')).toThrow('EROFS')
      const file = stage.put('secret', Buffer.from('s3cret'))
      expect(fs.readFileSync(file, 'utf8')).toBe('s3cret')
      expect(fs.statSync(file).mode & 0o777).toBe(0o600)
      await mountOn(directory)
    })
    linuxHost.inodes.close(source)
    linuxHost.inodes.close(tree)
    expect(left()).toEqual([[], false])
  })

  it('a staging mount is removed if the helper program fails after its mount', async () => {
    const failing = mountOnStage(context, async (directory) => {
      await mountOn(directory)
      throw new Error('failed afterwards')
    })
    await expect(failing).rejects.toThrow('failed afterwards')
    expect(left()).toEqual([[], false])
  })

  it('a helper program that ends without a mount is reported', async () => {
    await expect(mountOnStage(context, async () => {})).rejects.toThrow(/has mounted nothing/)
    expect(left()).toEqual([[], false])
  })

  it('a staging mount is removed after its call has crashed, and kept while the call runs', async () => {
    const place = `${top}/state/staging`
    fs.mkdirSync(`${place}/dead`, { recursive: true })
    fs.writeFileSync(`${place}/dead.lock`, '')
    for (const layer of ['one', 'two']) execFileSync('mount', ['-t', 'tmpfs', layer, `${place}/dead`])
    const tree = await mountOnStage(context, async (directory) => {
      sweep()
      expect(fs.readdirSync(place).sort()).toEqual(['mine', 'mine.lock'])
      await mountOn(directory)
    })
    linuxHost.inodes.close(tree)
    expect(left()).toEqual([[], false])
  })

  it('a staging mount keeps its daemon if its call ends while stale mounts are searched', async () => {
    const place = `${top}/state/staging`
    fs.mkdirSync(place, { recursive: true })
    fs.writeFileSync(`${place}/ended.lock`, '')
    const daemon = spawn('sleep', ['100'], { argv0: `${place}/ended/mount`, env: { [HELPER_MARK_VARIABLE]: 'x' } })
    await new Promise((done) => daemon.once('spawn', done))
    sweep()
    expect(fs.readdirSync(place)).toEqual([])
    expect(linuxHost.daemons.find(`${place}/ended/mount`)).toMatchObject({ pid: daemon.pid })
    linuxHost.daemons.kill(`${place}/ended`)
    expect(await new Promise((done) => daemon.once('exit', (_, signal) => done(signal)))).toBe('SIGKILL')
  })

  it('the staging directory is not created by a search for stale mounts', () => {
    sweep(`${top}/other`)
    expect(fs.existsSync(`${top}/other`)).toBe(false)
  })
})
