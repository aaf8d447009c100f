import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import * as net from 'node:net'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { Stage, until } from './stage.ts'

/** A stage with a plugin that kubelet watches. */
async function watched(timing = {}) {
  const stage = new Stage()
  await stage.kubelet.start()
  const plugin = stage.plugin({ timing })
  await until(() => stage.kubelet.lists.length === 1)
  return Object.assign(stage, { running: plugin })
}

const isRoot = process.getuid?.() === 0

describe('when kubelet restarts', () => {
  it('and empties the directory, the plugin listens again and registers under the new name', async () => {
    await using stage = await watched()
    await stage.kubelet.restart()
    await until(() => stage.kubelet.lists.length === 2)
    const [first, second] = stage.kubelet.registrations
    expect(second?.endpoint).not.toBe(first?.endpoint)
    expect(stage.sockets()).toEqual([second?.endpoint])
  })

  it('after it was killed and left a stale socket, the plugin finds the new socket', async () => {
    await using stage = await watched()
    stage.kubelet.stop({ killed: true })
    await until(() => stage.running.named('watched').length === 2)
    await stage.kubelet.start()
    await until(() => stage.kubelet.lists.length === 2)
  })

  it('and the directory was missing for a while, the plugin registers when it exists again', async () => {
    await using stage = await watched()
    stage.kubelet.stop()
    fs.rmSync(stage.directory, { recursive: true })
    await until(() => stage.running.named('closed').length === 1)
    await stage.kubelet.start()
    await until(() => stage.kubelet.lists.length === 2)
  })

  it('in a directory that was replaced in one step, the plugin registers there', async () => {
    await using stage = await watched()
    stage.kubelet.stop()
    fs.renameSync(stage.directory, `${stage.directory}.old`)
    await stage.kubelet.start()
    await until(() => stage.kubelet.lists.length === 2)
  })

  it('while a registration is pending, the plugin registers with the new kubelet', async () => {
    await using stage = new Stage()
    stage.kubelet.manner = 'never answers'
    await stage.kubelet.start()
    stage.plugin()
    await until(() => stage.kubelet.registrations.length === 1)
    const old = `${stage.kubelet.socket}.old`
    // The old one stays connected: only its socket is another's.
    fs.renameSync(stage.kubelet.socket, old)
    stage.kubelet.manner = 'takes'
    await stage.kubelet.start()
    await until(() => stage.kubelet.lists.length === 1)
  })

  it('many times, the last kubelet watches the devices', async () => {
    await using stage = await watched()
    for (let round = 0; round < 30; round++) {
      await stage.kubelet.restart()
      const seen = stage.kubelet.lists.length
      if (round % 3 === 0) await until(() => stage.kubelet.lists.length > seen)
    }
    const seen = stage.kubelet.registrations.length
    await stage.kubelet.restart()
    await until(() => stage.kubelet.registrations.length > seen)
    await until(() => stage.sockets().join() === stage.kubelet.registrations.at(-1)?.endpoint)
    expect(await stage.kubelet.call('GetDevicePluginOptions', {})).toBeDefined()
  })

  it('in a directory that cannot be watched yet, the plugin finds the new kubelet', async () => {
    await using stage = new Stage('not/there')
    const plugin = stage.plugin({ timing: { checkMs: 20 } })
    await until(() => plugin.named('health').length === 1)
    await stage.kubelet.start()
    await until(() => stage.kubelet.lists.length === 1)
  })
})

describe('a faulty kubelet', () => {
  it('refuses a registration for a while: the plugin retries at growing intervals', async () => {
    await using stage = new Stage()
    stage.kubelet.manner = 'refuses'
    await stage.kubelet.start()
    const plugin = stage.plugin()
    await until(() => plugin.named('register-failed').length === 4)
    stage.kubelet.manner = 'takes'
    await until(() => stage.kubelet.lists.length === 1)
    const failed = plugin.named('register-failed')
    expect(failed.slice(0, 4).map(({ failures }) => failures)).toEqual([1, 2, 3, 4])
    expect(failed[0]).toMatchObject({ level: 'warn', message: '2 UNKNOWN: not now' })
    expect(new Set(stage.kubelet.registrations.map(({ endpoint }) => endpoint)).size).toBe(1)
  })

  it('never replies: the plugin cancels the call and retries', async () => {
    await using stage = new Stage()
    stage.kubelet.manner = 'never answers'
    await stage.kubelet.start()
    const plugin = stage.plugin({ timing: { registerMs: 100 } })
    await until(() => plugin.named('register-failed').length > 0)
    expect(plugin.named('register-failed')[0]?.message).toMatch(/DEADLINE_EXCEEDED/)
    stage.kubelet.manner = 'takes'
    await until(() => stage.kubelet.lists.length > 0)
  })

  it('never replies, and the plugin can be stopped', async () => {
    await using stage = new Stage()
    stage.kubelet.manner = 'never answers'
    await stage.kubelet.start()
    const plugin = stage.plugin()
    await until(() => stage.kubelet.registrations.length === 1)
    await plugin.end()
    expect(stage.sockets()).toEqual([])
  })

  it('accepts a registration and never connects: the plugin registers again', async () => {
    await using stage = new Stage()
    stage.kubelet.manner = 'never calls back'
    await stage.kubelet.start()
    stage.plugin({ timing: { graceMs: 50 } })
    await until(() => stage.kubelet.registrations.length === 2)
    stage.kubelet.manner = 'takes'
    await until(() => stage.kubelet.lists.length > 0)
  })

  it('leaves a file in place of its socket: the plugin waits', async () => {
    await using stage = new Stage()
    fs.mkdirSync(stage.directory)
    fs.writeFileSync(stage.kubelet.socket, '')
    const plugin = stage.plugin()
    await until(() => plugin.named('health').length === 1)
    expect(plugin.named('register-failed')).toEqual([])
    await stage.kubelet.start()
    await until(() => stage.kubelet.lists.length === 1)
  })
})

describe('the sockets of other plugins', () => {
  it('are kept while they are in use, when the other plugin starts, restarts and ends', async () => {
    await using stage = await watched()
    const [first = ''] = stage.sockets()
    const old = new Date(Date.now() - 3_600_000)
    fs.utimesSync(join(stage.directory, first), old, old)
    const second = stage.plugin()
    await until(() => stage.kubelet.lists.length === 2)
    expect(stage.sockets()).toHaveLength(2)
    await second.end()
    expect(stage.sockets()).toEqual([first])
    await until(() => stage.running.events.every(({ event }) => event !== 'closed'))
  })

  it("are removed only if they are stale, old and named like this plugin's", async () => {
    await using stage = new Stage()
    await stage.kubelet.start()
    const dead = ['modekeep-fuse-1-abc.sock', 'modekeep-fuse-2-young.sock', 'other-fuse-1-abc.sock']
    for (const name of dead) await leaveDeadSocket(join(stage.directory, name))
    fs.writeFileSync(join(stage.directory, 'modekeep-fuse-3-abc.sock'), 'not a socket')
    const old = new Date(Date.now() - 3_600_000)
    for (const name of fs.readdirSync(stage.directory)) {
      if (!name.includes('young')) fs.utimesSync(join(stage.directory, name), old, old)
    }
    const plugin = stage.plugin()
    await until(() => stage.kubelet.lists.length === 1)
    expect(plugin.named('swept')).toMatchObject([{ sockets: ['modekeep-fuse-1-abc.sock'] }])
    const names = fs.readdirSync(stage.directory)
    expect(names).toEqual(expect.arrayContaining([...dead.slice(1), 'modekeep-fuse-3-abc.sock']))
    expect(names).not.toContain(dead[0])
  })
})

describe.skipIf(!isRoot)(isRoot ? 'a bind mount of the directory' : 'a bind mount (needs root: sudo npm test)', () => {
  it('the device plugin ends if its directory was removed under a bind mount, because no file can be created there', async () => {
    await using stage = new Stage()
    const real = join(stage.top, 'real')
    fs.mkdirSync(real)
    fs.mkdirSync(stage.directory)
    execFileSync('mount', ['--bind', real, stage.directory])
    try {
      await stage.kubelet.start()
      const plugin = stage.plugin({ timing: { checkMs: 20 } })
      await until(() => stage.kubelet.lists.length === 1)
      fs.rmSync(real, { recursive: true })
      await expect(plugin.ended).rejects.toThrow('was removed from the node under the mount it is seen through')
    } finally {
      execFileSync('umount', ['--lazy', stage.directory])
    }
  })
})

/** As a process leaves it that is killed. */
async function leaveDeadSocket(path: string): Promise<void> {
  const server = net.createServer()
  await new Promise<void>((resolve) => server.listen(path, () => resolve()))
  fs.renameSync(path, `${path}.kept`)
  await new Promise((resolve) => server.close(resolve))
  fs.renameSync(`${path}.kept`, path)
}
