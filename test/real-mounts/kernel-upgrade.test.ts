import { execFileSync, spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import { describe, expect, it } from 'vitest'
import { expectSame, makeVolume, owned, type Snapshot, snapshot } from '../crash/volume.ts'
import { BINARY, BinaryNode } from '../helpers/kubelet-call.ts'
import { requireProgram } from '../helpers/needs.ts'
import { failReads, refuseCalls, UUID_REQUESTS } from '../helpers/refuse.ts'
import { cannotRun } from './mapped-volume.ts'

const SUCCESS = { status: 'Success' }
const SIZES = { ext4: '32M', xfs: '300M', btrfs: '110M' } as const
type FsType = keyof typeof SIZES
const skipReason = cannotRun('')

/** A node whose volumes lie on a disk, with one that has an inode of every kind. */
class Upgraded extends BinaryNode {
  readonly source = `${this.volumes}/data`
  readonly original: Snapshot
  readonly #image = `${this.top}/disk.img`
  readonly #device: string

  constructor(fsType: FsType) {
    super()
    execFileSync('truncate', ['-s', SIZES[fsType], this.#image])
    execFileSync(requireProgram(`mkfs.${fsType}`), [...(fsType === 'ext4' ? ['-q', '-F'] : ['-q', '-f']), this.#image])
    execFileSync('mount', ['-o', 'loop', this.#image, this.volumes])
    this.#device = execFileSync('findmnt', ['-no', 'SOURCE', this.volumes], { encoding: 'utf8' }).trim()
    this.original = makeVolume(this.source)
  }

  /** Reads no UUID before, as earlier versions of modekeep on a kernel before 6.9. */
  kernel(age: 'without UUIDs' | 'with UUIDs'): void {
    this.wrapper = age === 'without UUIDs' ? [...failReads(this.#device), ...refuseCalls(UUID_REQUESTS)] : []
  }

  mount(pod: string, more: Record<string, string> = {}) {
    const group = { 'kubernetes.io/mounterArgs.FsGroup': '2000', ownership: 'walk', restoreOnUnmount: 'true' }
    return this.call('mount', this.podDirectory(pod), JSON.stringify({ ...group, source: this.source, ...more }))
  }

  unmount(pod: string) {
    return this.call('unmount', this.podDirectory(pod))
  }

  people(...args: string[]): { stdout: string; stderr: string; status: number | null } {
    const [program = BINARY, ...rest] = [...this.wrapper, BINARY, ...args]
    const env = { PATH: process.env.PATH, MODEKEEP_CONFIG: `${this.top}/config.json` }
    return spawnSync(program, rest, { env, encoding: 'utf8' })
  }

  get recorded(): string[] {
    const place = `${this.state}/ownership`
    return fs.existsSync(place) ? fs.readdirSync(place) : []
  }
}

describe.skipIf(skipReason !== '').each(['ext4', 'xfs'] as const)(
  `a volume on %s that was walked before the kernel was upgraded to 6.9${skipReason}`,
  (fsType) => {
    it('is restored by the unmount after the upgrade', async () => {
      const node = new Upgraded(fsType)
      node.kernel('without UUIDs')
      expect(await node.mount('one')).toMatchObject(SUCCESS)
      expect(node.recorded).toEqual([expect.stringMatching(/^[0-9a-f]+\.[0-9a-f]{16}-/)])
      node.kernel('with UUIDs')
      expect(await node.unmount('one')).toMatchObject(SUCCESS)
      expectSame(snapshot(node.source), node.original)
      expect(node.recorded).toEqual([])
    })

    it('keeps its records for the next pods, whose last unmount restores all of it, and only then gets its new name', async () => {
      const node = new Upgraded(fsType)
      node.kernel('without UUIDs')
      expect(await node.mount('one', { restoreOnUnmount: 'false' })).toMatchObject(SUCCESS)
      expect(await node.unmount('one')).toMatchObject(SUCCESS)
      const names = node.recorded
      node.kernel('with UUIDs')
      expect(await node.mount('two', { groupAccess: 'grant' })).toMatchObject(SUCCESS)
      expect(await node.mount('three', { 'kubernetes.io/mounterArgs.FsGroup': '3000' })).toMatchObject({
        status: 'Failure',
        message: expect.stringContaining('the volume belongs to group 2000'),
      })
      expect(node.recorded).toEqual(names)
      expect(await node.unmount('two')).toMatchObject(SUCCESS)
      expectSame(snapshot(node.source), node.original)
      expect(await node.mount('four', { restoreOnUnmount: 'false' })).toMatchObject(SUCCESS)
      expect(node.recorded).toEqual([expect.stringMatching(/^[0-9a-f]{32}-/)])
    })

    it('is reported by status and doctor, kept by gc, and restored by its name', async () => {
      const node = new Upgraded(fsType)
      node.kernel('without UUIDs')
      expect(await node.mount('one', { restoreOnUnmount: 'false' })).toMatchObject(SUCCESS)
      expect(await node.unmount('one')).toMatchObject(SUCCESS)
      const [name = ''] = node.recorded
      expect(node.people('status').stdout).not.toContain('its records have')
      node.kernel('with UUIDs')
      expect(node.people('status').stdout).toContain('its records have an older name of it')
      expect(node.people('doctor').stdout).toMatch(
        new RegExp(`ok +volume ${name}: its records have an older name of it`),
      )
      expect(node.people('gc').stdout).toContain('0 removed')
      expect(node.people('restore', name)).toMatchObject({ stderr: '', status: 0 })
      expectSame(snapshot(node.source), node.original)
    })
  },
)

describe.skipIf(skipReason !== '')(`a volume on btrfs${skipReason}`, () => {
  it('is restored after an upgrade of the kernel under either name', async () => {
    const node = new Upgraded('btrfs')
    node.kernel('without UUIDs')
    expect(await node.mount('one')).toMatchObject(SUCCESS)
    node.kernel('with UUIDs')
    expect(await node.unmount('one')).toMatchObject(SUCCESS)
    expectSame(snapshot(node.source), node.original)
    expect(node.recorded).toEqual([])
  })
})

describe.skipIf(skipReason !== '')(`a volume that has records under both of its names${skipReason}`, () => {
  /** Walked before the upgrade, and again after it by a version that did not know the older name. */
  async function both() {
    const node = new Upgraded('ext4')
    node.kernel('without UUIDs')
    expect(await node.mount('one', { restoreOnUnmount: 'false' })).toMatchObject(SUCCESS)
    expect(await node.unmount('one')).toMatchObject(SUCCESS)
    const [older = ''] = node.recorded
    fs.renameSync(`${node.state}/ownership/${older}`, `${node.top}/aside`)
    const before = snapshot(node.source)
    node.kernel('with UUIDs')
    expect(await node.mount('two', { restoreOnUnmount: 'false', groupAccess: 'grant' })).toMatchObject(SUCCESS)
    expect(await node.unmount('two')).toMatchObject(SUCCESS)
    const [newer = ''] = node.recorded
    fs.renameSync(`${node.top}/aside`, `${node.state}/ownership/${older}`)
    return { node, older, newer, before }
  }

  it('is restored by the newer first, as the message says, and then by the older', async () => {
    const { node, older, newer, before } = await both()
    const way = `"modekeep restore ${newer}", then "modekeep restore ${older}"`
    expect(node.people('restore', older)).toMatchObject({ status: 1, stderr: expect.stringContaining(way) })
    for (const verb of ['status', 'doctor']) expect(node.people(verb).stdout).toContain(way)
    expect(node.people('gc').stdout).toContain('0 removed')
    expect(node.recorded).toHaveLength(2)
    expect(node.people('restore', newer)).toMatchObject({ status: 0 })
    expectSame(snapshot(node.source), before)
    expectSame(owned(node.original, node.source), before)
    expect(node.people('restore', older)).toMatchObject({ status: 0 })
    expectSame(snapshot(node.source), node.original)
    expect(node.recorded).toEqual([])
  })
})

describe.skipIf(skipReason !== '').each(['ext4', 'xfs', 'btrfs'] as const)(
  `a kernel that reports no UUID of %s any more${skipReason}`,
  (fsType) => {
    it('uses the records of a newer kernel, and restores by them', async () => {
      const node = new Upgraded(fsType)
      node.kernel('with UUIDs')
      expect(await node.mount('one', { restoreOnUnmount: 'false' })).toMatchObject(SUCCESS)
      expect(await node.unmount('one')).toMatchObject(SUCCESS)
      const names = node.recorded
      node.kernel('without UUIDs')
      expect(node.people('gc').stdout).toContain('0 removed')
      expect(await node.mount('two', { 'kubernetes.io/mounterArgs.FsGroup': '3000' })).toMatchObject(SUCCESS)
      expect(node.recorded).toEqual(names)
      expect(await node.unmount('two')).toMatchObject(SUCCESS)
      expectSame(snapshot(node.source), node.original)
      expect(node.recorded).toEqual([])
    })
  },
)
