import { type ChildProcess, spawn } from 'node:child_process'
import * as fs from 'node:fs'
import { text } from 'node:stream/consumers'
import { describe, expect, it } from 'vitest'
import { Stage, until } from '../frontends/device-plugin/stage.ts'
import { isRoot } from '../helpers/stage.ts'
import { MODEKEEP } from './modekeep.ts'

const isBuilt = fs.existsSync(MODEKEEP)
const built = (name: string) => (isBuilt ? name : `${name} (needs dist/modekeep: npm run build)`)

class Binary {
  readonly #child: ChildProcess
  readonly #stdout: Promise<string>
  readonly #stderr: Promise<string>
  readonly #code: Promise<number | null>

  constructor(args: readonly string[]) {
    this.#child = spawn(MODEKEEP, ['device-plugin', ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
    this.#stdout = text(this.#child.stdout as NonNullable<ChildProcess['stdout']>)
    this.#stderr = text(this.#child.stderr as NonNullable<ChildProcess['stderr']>)
    this.#code = new Promise((resolve) => this.#child.once('exit', resolve))
  }

  /** What its descriptors lead to. */
  get descriptors(): string[] {
    const directory = `/proc/${this.#child.pid}/fd`
    return fs.readdirSync(directory).flatMap((name) => {
      try {
        return fs.readlinkSync(`${directory}/${name}`)
      } catch {
        return []
      }
    })
  }

  /** Ends by a signal or by itself. */
  async end(signal?: NodeJS.Signals) {
    if (signal) this.#child.kill(signal)
    return { code: await this.#code, stdout: await this.#stdout, stderr: await this.#stderr }
  }

  [Symbol.dispose](): void {
    this.#child.kill('SIGKILL')
  }
}

// It leaves no core, so its user may not look into it.
const looking = (name: string) =>
  isRoot ? name : `${name} (skipped: only root sees its descriptors; run "sudo npm test")`

/** Without what depends on the mode of this machine's device. */
const events = (stdout: string): string[] =>
  stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line).event)
    .filter((event) => event !== 'restricted')

describe.skipIf(!isBuilt)(built('the executable as a device plugin'), () => {
  it.each(['SIGTERM', 'SIGINT'] as const)(
    'the device plugin ends at %s with status 0 and without a socket, and prints one line for each event',
    async (signal) => {
      await using stage = new Stage()
      await stage.kubelet.start()
      using plugin = new Binary(['--kubelet-dir', stage.top, '--devices', '7', '--json'])
      await until(() => stage.kubelet.lists.length === 1)
      expect(stage.kubelet.lists[0]).toHaveLength(7)
      expect(stage.kubelet.registrations).toMatchObject([{ listening: true }])
      const socket = stage.sockets()[0] ?? ''
      expect(fs.statSync(`${stage.directory}/${socket}`).mode & 0o077).toBe(0)
      await stage.kubelet.call('Allocate', { container_requests: [{ devicesIDs: ['fuse-6'] }] })
      const { code, stdout, stderr } = await plugin.end(signal)
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
      expect(stage.sockets()).toEqual([])
      const expected = ['start', 'health', 'listening', 'registered', 'watched', 'allocated', 'closed', 'end']
      expect(events(stdout).toSorted()).toEqual(expected.toSorted())
      expect(JSON.parse(stdout.split('\n')[0] ?? '')).toMatchObject({
        time: expect.stringMatching(/^\d{4}-.*Z$/),
        level: 'info',
        pid: expect.any(Number),
        event: 'start',
        directory: stage.directory,
        device: '/dev/fuse',
        devices: 7,
      })
    },
  )

  it.skipIf(!isRoot)(
    looking('the device plugin ends at SIGTERM while kubelet and its directory are missing'),
    async () => {
      await using stage = new Stage()
      using plugin = new Binary(['--kubelet-dir', stage.top])
      // Its handler is there once it watches.
      await until(() => plugin.descriptors.includes('anon_inode:inotify'))
      const { code, stdout } = await plugin.end('SIGTERM')
      expect(code).toBe(0)
      expect(events(stdout)).toEqual(['start', 'health', 'end'])
    },
  )

  it.skipIf(!isRoot)(looking('the device plugin leaks no descriptor over 50 restarts of kubelet'), async () => {
    await using stage = new Stage()
    await stage.kubelet.start()
    using plugin = new Binary(['--kubelet-dir', stage.top])
    const restarts = async (count: number) => {
      for (let round = 0; round < count; round++) {
        await until(() => stage.kubelet.health.length === 1 && stage.kubelet.lists.length > 0)
        stage.kubelet.lists.length = 0
        await stage.kubelet.restart()
      }
      await until(() => stage.kubelet.lists.length === 1)
    }
    await restarts(5)
    const before = plugin.descriptors.length
    await restarts(50)
    await until(() => plugin.descriptors.length <= before)
    expect((await plugin.end('SIGTERM')).code).toBe(0)
  })

  it('the device plugin serves while a second device plugin runs, and each plugin removes only its own socket', async () => {
    await using stage = new Stage()
    await stage.kubelet.start()
    using first = new Binary(['--kubelet-dir', stage.top])
    await until(() => stage.kubelet.lists.length === 1)
    using second = new Binary(['--kubelet-dir', stage.top])
    await until(() => stage.kubelet.lists.length === 2)
    const [one, two] = stage.kubelet.registrations.map(({ endpoint }) => endpoint)
    expect(stage.sockets().toSorted()).toEqual([one, two].toSorted())
    expect((await first.end('SIGTERM')).code).toBe(0)
    expect(stage.sockets()).toEqual([two])
    expect((await second.end('SIGTERM')).code).toBe(0)
    expect(stage.sockets()).toEqual([])
  })

  it('the device plugin registers next to the stale socket of a killed plugin', async () => {
    await using stage = new Stage()
    await stage.kubelet.start()
    using killed = new Binary(['--kubelet-dir', stage.top])
    await until(() => stage.kubelet.lists.length === 1)
    expect((await killed.end('SIGKILL')).code).toBe(null)
    using next = new Binary(['--kubelet-dir', stage.top])
    await until(() => stage.kubelet.lists.length === 2)
    expect((await next.end('SIGTERM')).code).toBe(0)
    expect(stage.sockets()).toEqual([stage.kubelet.registrations[0]?.endpoint])
  })

  it.each([
    [['--devices', '0'], '--devices is "0": write a number from 1 to 10000'],
    [['--devices', '10001'], '--devices is "10001": write a number from 1 to 10000'],
    [['--devices', 'many'], '--devices is "many": write a number from 1 to 10000'],
    [['--kubelet-dir', 'var'], '--kubelet-dir is "var": write an absolute path'],
    [['--kubelet-dir', `/${'x'.repeat(100)}`], 'too long for a socket'],
    [['--bogus'], 'device-plugin has no option "--bogus"'],
    [['extra'], 'device-plugin is about the whole node, got "extra"'],
  ])('the device plugin refuses %j with status 2 and a sentence on stderr', async (args, message) => {
    using plugin = new Binary(args)
    const { code, stdout, stderr } = await plugin.end()
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toMatch(/^modekeep: /)
    expect(stderr).toContain(message)
  })

  it('the device plugin prints its help', async () => {
    using plugin = new Binary(['--help'])
    const { code, stdout } = await plugin.end()
    expect(code).toBe(0)
    expect(stdout).toMatch(/^modekeep device-plugin \[options\][\s\S]*--devices N[\s\S]*--kubelet-dir DIR/)
  })
})
