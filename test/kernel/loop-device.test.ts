import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { afterEach, describe, expect, it } from 'vitest'
import { expectSame, makeVolume, type Snapshot, snapshot } from '../crash/volume.ts'
import { attachDisk, detachDisks } from '../helpers/disks.ts'
import { BinaryNode } from '../helpers/kubelet-call.ts'
import { needed } from '../helpers/needs.ts'
import { type Lacking, lacking, UUID_REQUESTS } from '../helpers/refuse.ts'
import { cannotRun } from './mapped-volume.ts'

const SUCCESS = { status: 'Success' }
const SIZES = { ext4: '32M', xfs: '300M', btrfs: '110M' } as const
type FsType = keyof typeof SIZES
const skipped = cannotRun('')

const run = (command: string, ...args: string[]) => execFileSync(command, args, { stdio: ['ignore', 'pipe', 'pipe'] })

/** A node whose volumes lie in an image, which is mounted from one loop device and then from another. */
class TwoLoopDevices extends BinaryNode {
  readonly source = `${this.volumes}/data`
  readonly original: Snapshot
  readonly #image = `${this.top}/disk.img`
  #device: string

  constructor(fsType: FsType) {
    super()
    run('truncate', '-s', SIZES[fsType], this.#image)
    run(needed(`mkfs.${fsType}`), '-q', fsType === 'ext4' ? '-F' : '-f', this.#image)
    this.#device = attachDisk(this.#image)
    run('mount', this.#device, this.volumes)
    this.original = makeVolume(this.source)
  }

  /** The image gets another device, while the first one shows another file. */
  changeDevice(): void {
    run('umount', this.volumes)
    run('losetup', '--detach', this.#device)
    const other = `${this.top}/other.img`
    fs.writeFileSync(other, Buffer.alloc(1 << 20))
    run('losetup', this.#device, other)
    const before = this.#device
    this.#device = attachDisk(this.#image)
    expect(this.#device).not.toBe(before)
    run('mount', this.#device, this.volumes)
  }

  without(what: readonly Lacking[]): void {
    this.wrapper = what.length === 0 ? [] : lacking(what)
  }

  mount(pod: string, group: string, restoreOnUnmount: string) {
    const options = { 'kubernetes.io/mounterArgs.FsGroup': group, ownership: 'walk', restoreOnUnmount }
    return this.call('mount', this.podDirectory(pod), JSON.stringify({ ...options, source: this.source }))
  }

  unmount(pod: string) {
    return this.call('unmount', this.podDirectory(pod))
  }

  get recorded(): string[] {
    const place = `${this.state}/ownership`
    return fs.existsSync(place) ? fs.readdirSync(place) : []
  }
}

const nodes: TwoLoopDevices[] = []

afterEach(() => {
  for (const { volumes } of nodes.splice(0)) run('umount', volumes)
  detachDisks()
})

function makeNode(fsType: FsType): TwoLoopDevices {
  const node = new TwoLoopDevices(fsType)
  nodes.push(node)
  return node
}

const WAYS: readonly [string, readonly Lacking[], readonly Lacking[]][] = [
  ['with FS_IOC_GETFSUUID', [], []],
  ['without FS_IOC_GETFSUUID', ['FS_IOC_GETFSUUID'], ['FS_IOC_GETFSUUID']],
  ['without any ioctl that reports the UUID', UUID_REQUESTS, UUID_REQUESTS],
  ['with records by f_fsid that an earlier version made', UUID_REQUESTS, []],
]

describe.skipIf(skipped !== '').each(['ext4', 'xfs', 'btrfs'] as const)(
  `a volume on %s that gets another loop device between two pods${skipped}`,
  (fsType) => {
    it.each(WAYS)('keeps its records and its original groups, %s', async (_, before, after) => {
      const node = makeNode(fsType)
      node.without(before)
      expect(await node.mount('one', '2000', 'false')).toMatchObject(SUCCESS)
      expect(await node.unmount('one')).toMatchObject(SUCCESS)
      const names = node.recorded
      expect(names).toHaveLength(1)
      node.changeDevice()
      node.without(after)
      expect(await node.mount('two', '3000', 'true')).toMatchObject(SUCCESS)
      expect(node.recorded).toEqual(names)
      expect(await node.unmount('two')).toMatchObject(SUCCESS)
      expectSame(snapshot(node.source), node.original)
      expect(node.recorded).toEqual([])
    })
  },
)
