import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { afterEach, describe, expect, it } from 'vitest'
import { expectSame, makeVolume, type Snapshot, snapshot } from '../crash/volume.ts'
import { attachDisk, detachDisk, detachDisks, reattachDisk } from '../helpers/disks.ts'
import { BinaryNode } from '../helpers/kubelet-call.ts'
import { requireProgram } from '../helpers/needs.ts'
import { failReads, type Lacking, refuseCalls, UUID_REQUESTS } from '../helpers/refuse.ts'
import { cannotRun } from './mapped-volume.ts'

const SUCCESS = { status: 'Success' }
const SIZES = { ext4: '32M', xfs: '300M', btrfs: '110M' } as const
type FsType = keyof typeof SIZES
const skipReason = cannotRun('')

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
    run(requireProgram(`mkfs.${fsType}`), '-q', fsType === 'ext4' ? '-F' : '-f', this.#image)
    this.#device = attachDisk(this.#image)
    run('mount', this.#device, this.volumes)
    this.original = makeVolume(this.source)
  }

  /** The image gets another device, while the first one shows another file. */
  changeDevice(): void {
    run('umount', this.volumes)
    detachDisk(this.#device)
    const other = `${this.top}/other.img`
    fs.writeFileSync(other, Buffer.alloc(1 << 20))
    const before = this.#device
    reattachDisk(before, other)
    this.#device = attachDisk(this.#image)
    if (this.#device === before) {
      // Another test had the device open for a moment, so that it could not get the other file.
      this.#device = attachDisk(this.#image)
      detachDisk(before)
      reattachDisk(before, other)
    }
    expect(this.#device).not.toBe(before)
    run('mount', this.#device, this.volumes)
  }

  /** Its calls run on a kernel that names file systems so. */
  nameBy(name: FileSystemName): void {
    const { lacks, hidesDevice } = NAMES[name]
    const refusing = lacks.length === 0 ? [] : refuseCalls(lacks)
    this.wrapper = [...(hidesDevice ? failReads(this.#device) : []), ...refusing]
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

type FileSystemName = 'FS_IOC_GETFSUUID' | "the file system's ioctl" | 'the superblock' | 'f_fsid'

/** What a kernel lacks that names a file system so, and whether its device cannot be read. */
const NAMES: Readonly<Record<FileSystemName, { lacks: readonly Lacking[]; hidesDevice?: true }>> = {
  FS_IOC_GETFSUUID: { lacks: [] },
  "the file system's ioctl": { lacks: ['FS_IOC_GETFSUUID'] },
  'the superblock': { lacks: UUID_REQUESTS },
  f_fsid: { lacks: UUID_REQUESTS, hidesDevice: true },
}

/** How the file system is named for the first pod and for the second. */
const WAYS: readonly [FileSystemName, FileSystemName][] = [
  ['FS_IOC_GETFSUUID', 'FS_IOC_GETFSUUID'],
  ["the file system's ioctl", "the file system's ioctl"],
  ['the superblock', 'the superblock'],
  ['f_fsid', 'f_fsid'],
  ["the file system's ioctl", 'the superblock'],
  ['the superblock', 'FS_IOC_GETFSUUID'],
  ['f_fsid', 'FS_IOC_GETFSUUID'],
  ['f_fsid', 'the superblock'],
  ['FS_IOC_GETFSUUID', 'f_fsid'],
]

/** The superblocks of ext4 and btrfs are not read: f_fsid of ext4 is its UUID, and every kernel has the ioctl of btrfs. */
const waysOf = (fsType: FsType) => (fsType === 'xfs' ? WAYS : WAYS.filter((way) => !way.includes('the superblock')))

const TYPES = { ext4: 'ef53', xfs: '58465342', btrfs: '9123683e' } as const

describe.skipIf(skipReason !== '').each(['ext4', 'xfs', 'btrfs'] as const)(
  `a volume on %s that gets another loop device between two pods${skipReason}`,
  (fsType) => {
    it.each(waysOf(fsType))(
      'keeps its records and its first groups, named by %s and then by %s',
      async (before, after) => {
        const node = makeNode(fsType)
        node.nameBy(before)
        expect(await node.mount('one', '2000', 'false')).toMatchObject(SUCCESS)
        expect(await node.unmount('one')).toMatchObject(SUCCESS)
        const names = node.recorded
        expect(names).toHaveLength(1)
        const isByFsid = fsType === 'btrfs' || before === 'f_fsid'
        expect(names[0]).toMatch(isByFsid ? new RegExp(`^${TYPES[fsType]}\\.`) : /^[0-9a-f]{32}-/)
        node.changeDevice()
        node.nameBy(after)
        expect(await node.mount('two', '3000', 'true')).toMatchObject(SUCCESS)
        expect(node.recorded).toEqual(names)
        expect(await node.unmount('two')).toMatchObject(SUCCESS)
        expectSame(snapshot(node.source), node.original)
        expect(node.recorded).toEqual([])
      },
    )
  },
)
