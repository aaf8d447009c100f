import { spawn } from 'node:child_process'
import { once } from 'node:events'
import * as fs from 'node:fs'
import { beforeEach, describe, expect, it } from 'vitest'
import { DEFAULT_CONFIG, type NodeConfig } from '../../src/config/defaults.ts'
import { parseFlexVolumeRequest } from '../../src/config/request.ts'
import { ISOLATED_WORKER_VERB } from '../../src/kernel/worker-process.ts'
import { volumeKindLookup } from '../../src/volume/index.ts'
import { cannotServe, FuseNode, killDaemon, until } from '../helpers/fuse-node.ts'
import { BINARY } from '../helpers/kubelet-call.ts'
import { addSkipReason } from '../helpers/needs.ts'

const cannot = cannotServe('bindfs', 'strace')

describe.skipIf(cannot !== '')(addSkipReason('killed calls of FUSE volumes', cannot), () => {
  let node: FuseNode
  let options: Record<string, string>
  beforeEach(() => {
    node = new FuseNode(['fuse.bindfs'])
    const source = `${node.volumes}/data`
    fs.mkdirSync(source)
    fs.writeFileSync(`${source}/a`, 'hello')
    options = { 'kubernetes.io/fsType': 'fuse.bindfs', source }
  })

  const success = { status: 'Success' }
  const other = { mountOptions: 'attr_timeout=2' }
  const layers = () => node.layers('one').map(({ fsType }) => fsType)

  /** SIGKILL in place of the `when`-th such system call of a mount. @returns whether it got there */
  async function isKilledAt(name: string, when: number, asked: Record<string, string>): Promise<boolean> {
    const config: NodeConfig = { ...DEFAULT_CONFIG, ...JSON.parse(fs.readFileSync(node.config, 'utf8')) }
    const about = parseFlexVolumeRequest(node.podDirectory('one'), JSON.stringify(asked), config, volumeKindLookup)
    // The process that mounts for the call, and not its children: the daemon has to go on without strace.
    const inject = ['-e', `trace=${name}`, '-e', `inject=${name}:signal=KILL:when=${when}`]
    const strace = ['strace', '-qq', ...inject, '-o', '/dev/null', BINARY, ISOLATED_WORKER_VERB]
    const root = fs.openSync('/', 'r')
    const child = spawn('sh', ['-c', 'exec "$@" $$', 'sh', ...strace], {
      stdio: ['pipe', 'pipe', 'ignore', root],
      env: { PATH: process.env.PATH },
    })
    fs.closeSync(root)
    child.stdin?.write(`${JSON.stringify({ work: 'mount', about, config, secrets: [] })}\n`)
    let said = ''
    child.stdout?.on('data', (data) => {
      said += data
    })
    const [code, signal] = await once(child, 'close')
    if (signal === 'SIGKILL') return true
    expect([code, said]).toEqual([0, expect.stringContaining('{"done":')])
    return false
  }

  function expectWhole(): void {
    expect(layers()).toEqual(['tmpfs', 'fuse'])
    expect(fs.readFileSync(`${node.podDirectory('one')}/a`, 'utf8')).toBe('hello')
    expect(node.staged()).toEqual([])
  }

  it('a FUSE volume whose mount call was killed is mounted with its guard mount after the next call or heal', async () => {
    const left = new Set<string>()
    for (let when = 1; await isKilledAt('move_mount', when, options); when++) {
      left.add(layers().join())
      for (const step of when % 2 === 0 ? ['heal', 'mount'] : ['mount', 'heal']) {
        if (step === 'mount') expect(await node.mount('one', options)).toEqual(success)
        else if (layers().length > 0) expect(node.heal()).toMatchObject([{ state: 'healthy', action: 'none' }])
        if (layers().length > 0) expectWhole()
      }
      expect(await node.unmount('one')).toEqual(success)
      await until(() => node.processes().length === 0)
    }
    // One of the deaths was between the mount and its guard.
    expect([...left].sort()).toEqual(['', 'fuse'])
    expectWhole()
  })

  it('a FUSE volume whose mount call was killed gets its missing guard mount from heal', async () => {
    for (let when = 1; layers().join() !== 'fuse'; when++) {
      expect(await isKilledAt('move_mount', when, options)).toBe(true)
    }
    const daemon = node.daemon('one')
    expect(node.heal()).toMatchObject([{ state: 'healthy', action: 'none', reason: '' }])
    expectWhole()
    expect(node.daemon('one')).toBe(daemon)
  })

  it.each(['heal', 'mount'])(
    'if a mount call is killed while it replaces a FUSE volume whose daemon died, the next %s replaces the volume',
    async (next) => {
      expect(await node.mount('one', options)).toEqual(success)
      const deaths = await eachDeath(async () => {
        if (next === 'heal') expect(node.heal()).toMatchObject([{ action: 'replaced' }])
        else expect(await node.mount('one', options)).toEqual(success)
        expect(fs.readFileSync(`${node.podDirectory('one')}/a`, 'utf8')).toBe('hello')
      })
      // Of the staging directory, of what the daemon shows, and beneath the dead mount.
      expect(deaths).toBe(3)
      expect(await node.unmount('one')).toEqual(success)
      await until(() => node.processes().length === 0)
      expect([layers(), node.staged(), node.mountState()]).toEqual([[], [], []])
    },
  )

  /** Kills the daemon, then the call that was to replace its mount, at each of its mounts. @returns how many that were */
  async function eachDeath(then: () => Promise<void>): Promise<number> {
    for (let when = 1; ; when++) {
      await killDaemon(node, 'one')
      const isKilled = await isKilledAt('move_mount', when, options)
      if (!isKilled) return when - 1
      await then()
    }
  }

  it.each(['heal', 'mount'])(
    'a FUSE volume whose mount call was killed during a replacement is replaced by the next %s, which ends a stopped daemon',
    async (next) => {
      expect(await node.mount('one', options)).toEqual(success)
      const [old] = node.processes()
      const asked = { ...options, ...other }
      // The last such call takes the old mount away; before that nothing has been replaced.
      for (let when = 1; layers().length < 3; when++) expect(await isKilledAt('umount2', when, asked)).toBe(true)
      process.kill(old ?? 0, 'SIGSTOP')
      if (next === 'heal') expect(node.heal()).toMatchObject([{ state: 'interrupted', action: 'replaced' }])
      else expect(await node.mount('one', asked)).toEqual(success)
      await until(() => !node.processes().includes(old ?? 0))
      // What the dead call has put beneath stays hidden there.
      expect(layers()).toEqual(['tmpfs', 'fuse', 'fuse'])
      expect(fs.readFileSync(`${node.podDirectory('one')}/a`, 'utf8')).toBe('hello')
      expect(await node.unmount('one')).toEqual(success)
      await until(() => node.processes().length === 0)
      expect([layers(), node.staged(), node.mountState()]).toEqual([[], [], []])
    },
  )
})
