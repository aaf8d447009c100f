import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { deferHandleClose } from '../../src/kernel/host.ts'
import { readSuperblockUuid, XFS_SUPER_MAGIC } from '../../src/kernel/linux/file-system-id.ts'
import { linuxHost } from '../../src/kernel/linux/index.ts'
import { attachDisk, DISK_TYPES, detachDisks, makeImage } from '../helpers/disks.ts'
import { requireProgram } from '../helpers/needs.ts'
import { isRoot } from '../helpers/stage.ts'

const suiteTitle = isRoot ? '' : ' (skipped: mounts need root; run "sudo npm test")'
const { inodes } = linuxHost

function namesAt(path: string) {
  const handle = inodes.openLinkFree(path)
  using _ = deferHandleClose(inodes, handle)
  return { id: inodes.fileSystemId(handle), former: inodes.formerFileSystemId(handle) }
}

function superblockUuidAt(path: string, type: number): string | undefined {
  const handle = inodes.openLinkFree(path)
  using _ = deferHandleClose(inodes, handle)
  return readSuperblockUuid(handle, type)?.toString('hex')
}

/** Some kernels (7.2.7) add the number of the device to the f_fsid of a btrfs: 7 and the number of the loop device. */
function expectNamedWithoutDevice(id: string, former = ''): void {
  const [own, ofKernel] = [id, former].map((name) => BigInt(`0x${name.split('.')[1]}`)) as [bigint, bigint]
  const difference = own ^ ofKernel
  expect(difference === 0n || difference >> 8n === 0x700n, `${id} is not ${former}`).toBe(true)
}

describe.skipIf(!isRoot)(`the identity of a file system${suiteTitle}`, () => {
  let top: string
  let mounted: string
  beforeEach(() => {
    top = fs.mkdtempSync(`${tmpdir()}/modekeep-file-system-`)
    mounted = `${top}/mounted`
    fs.mkdirSync(mounted)
  })
  afterEach(() => {
    execFileSync('umount', [mounted])
    detachDisks()
    fs.rmSync(top, { recursive: true })
  })

  it.each(DISK_TYPES.filter((type) => type !== 'squashfs'))(
    'is the same for a directory and a regular file on %s',
    (type) => {
      makeImage(`${top}/image`, type)
      execFileSync('mount', ['-o', 'loop', `${top}/image`, mounted])
      const { id, former } = namesAt(mounted)
      expect(namesAt(`${mounted}/one`)).toEqual({ id, former })
      if (type === 'btrfs') expectNamedWithoutDevice(id, former)
      else expect(id).toMatch(/^[0-9a-f]{32}$/)
    },
  )

  it('includes the number of the subvolume on btrfs', () => {
    makeImage(`${top}/image`, 'btrfs')
    execFileSync('mount', ['-o', 'loop', `${top}/image`, mounted])
    for (const name of ['a', 'b']) execFileSync('btrfs', ['-q', 'subvolume', 'create', `${mounted}/${name}`])
    const names = ['', '/a', '/b'].map((name) => namesAt(`${mounted}${name}`))
    for (const { id, former } of names) expectNamedWithoutDevice(id, former)
    expect(new Set(names.map(({ id }) => id)).size).toBe(3)
  })

  it.each(['as made', 'with a UUID that it was given later'])(
    'is the UUID in the superblock of an xfs %s, which is the UUID that the kernel reports',
    (how) => {
      makeImage(`${top}/image`, 'xfs')
      if (how !== 'as made') {
        execFileSync(requireProgram('xfs_admin'), ['-U', 'generate', `${top}/image`], { stdio: 'ignore' })
      }
      execFileSync('mount', ['-o', 'loop', `${top}/image`, mounted])
      expect(superblockUuidAt(mounted, XFS_SUPER_MAGIC)).toBe(namesAt(mounted).id)
    },
  )

  it('is the same for a FIFO as for a directory on xfs', () => {
    makeImage(`${top}/image`, 'xfs')
    execFileSync('mount', ['-o', 'loop', `${top}/image`, mounted])
    execFileSync('mkfifo', [`${mounted}/fifo`])
    expect(namesAt(`${mounted}/fifo`)).toEqual(namesAt(mounted))
  })

  it("is f_fsid for a FIFO if the device's name in /dev leads to another device", () => {
    for (const name of ['image', 'other']) makeImage(`${top}/${name}`, 'xfs')
    const [device, other] = [attachDisk(`${top}/image`), attachDisk(`${top}/other`)]
    execFileSync('mount', [device, mounted])
    execFileSync('mkfifo', [`${mounted}/fifo`])
    expect(namesAt(`${mounted}/fifo`).id).toBe(namesAt(mounted).id)
    execFileSync('mount', ['--bind', other, device])
    try {
      const { id, former } = namesAt(`${mounted}/fifo`)
      expect(id).toBe(former)
    } finally {
      execFileSync('umount', [device])
    }
  })

  it('is not read from a device of another type, or for a file system without a device', () => {
    makeImage(`${top}/image`, 'ext4')
    execFileSync('mount', ['-o', 'loop', `${top}/image`, mounted])
    expect(superblockUuidAt(mounted, XFS_SUPER_MAGIC)).toBeUndefined()
    expect(superblockUuidAt('/proc', XFS_SUPER_MAGIC)).toBeUndefined()
  })
})
