import { describe, expect, it } from 'vitest'
import { DEFAULT_CONFIG } from '../../src/config/defaults.ts'
import { parseFlexVolumeRequest } from '../../src/config/request.ts'
import { type BlockDeviceOperations, type Handle, type Host, SystemError } from '../../src/kernel/host.ts'
import { diskKinds } from '../../src/volume/disk.ts'
import { volumeKindLookup } from '../../src/volume/index.ts'
import { memoryHost } from '../memory-host/index.ts'
import { MemoryWorld } from '../memory-host/world.ts'

const IMAGE = '/var/lib/modekeep/volumes/image'
const MAGIC = Buffer.alloc(0x10100)
MAGIC.write('XFSB', 0, 'latin1')

/** A node whose kernel answers as the test says. */
function nodeWith(
  kernel: {
    createTree?: Host['mounts']['createTree']
    cloneTree?: Host['mounts']['cloneTree']
  } & Partial<BlockDeviceOperations>,
) {
  const world = new MemoryWorld()
  world.fs.mkdirSync('/var/lib/modekeep/volumes', { recursive: true })
  world.fs.writeFileSync(IMAGE, '')
  const host = memoryHost(world)
  const { createTree = host.mounts.createTree, cloneTree = host.mounts.cloneTree, ...more } = kernel
  const attachLoop = (image: Handle) => host.inodes.duplicate(image)
  const known: BlockDeviceOperations = {
    ...host.blocks,
    attachLoop,
    nameOf: () => '/dev/loop9',
    start: () => MAGIC,
    isShownBy: () => false,
    ...more,
  }
  return { world, host: { ...host, mounts: { ...host.mounts, createTree, cloneTree }, blocks: known } }
}

async function open(node: ReturnType<typeof nodeWith>, more: Record<string, string> = {}) {
  const options = JSON.stringify({ source: IMAGE, 'kubernetes.io/fsType': 'xfs', ...more })
  const request = parseFlexVolumeRequest('/pods/v', options, DEFAULT_CONFIG, volumeKindLookup)
  const { host } = node
  const kind = diskKinds.find(({ name }) => name === 'xfs')
  const source = kind?.openSource?.(host, request)
  const rest = {
    group: undefined,
    secrets: new Map(),
    stateDir: '/state',
    staging: '1-a',
    timeoutSeconds: 1,
    tmpfsMaxSize: '64m',
  }
  const asked = { isVolume: () => false, warn: () => {} }
  const making = { host, request, source, ...rest, ...asked }
  try {
    return await kind?.openTree(making)
  } finally {
    if (source) host.inodes.close(source.handle)
  }
}

function answering(syscall: string, code: string): Host['mounts']['createTree'] {
  return () => {
    throw new SystemError(syscall, code, '/dev/loop9', 'words of the kernel')
  }
}

describe('a failing mount of a disk', () => {
  it.each([
    ['fsopen', 'ENODEV', /^this node's kernel cannot mount xfs: load the kernel module xfs$/],
    ['fsmount', 'EACCES', /is a read-only device: set readOnly on the volume .*words of the kernel/],
    ['fsmount', 'EROFS', /must have its log replayed, but cannot be written/],
    ['fsmount', 'EUCLEAN', /is damaged: check it with fsck\.xfs/],
    ['fsmount', 'EIO', /is damaged/],
    ['fsmount', 'EEXIST', /has the UUID of a file system that is mounted/],
    ['fsmount', 'EBUSY', /is in use on this node, by swap, LVM, RAID/],
    ['fsmount', 'EINVAL', /check the mountOptions \("nouuid" if it is a copy/],
    ['fsmount', 'ENOMEM', /^fsmount .*ENOMEM/],
  ])('with %s %s is reported with the remedy, and every handle is closed', async (syscall, code, sentence) => {
    const node = nodeWith({ createTree: answering(syscall, code) })
    await expect(open(node)).rejects.toThrow(sentence)
    expect(node.world.handles.size).toBe(0)
    expect(node.world.locked.size).toBe(0)
  })

  it('of a subPath before Linux 6.15 is reported with the needed version', async () => {
    const cloneTree = () => {
      throw new SystemError('open_tree', 'EINVAL', 'the source')
    }
    const node = nodeWith({ cloneTree })
    const { createTree } = node.host.mounts
    node.host.mounts.createTree = (...args) => {
      const tree = createTree(...args)
      node.world.at(tree).mount.fileSystem.fs.mkdirSync('/sub')
      return tree
    }
    await expect(open(node, { subPath: 'sub' })).rejects.toThrow('of a disk or an image needs Linux 6.15 or newer')
    expect(node.world.handles.size).toBe(0)
  })

  it.each([
    ['EROFS', /cannot be written \(EROFS\): set readOnly/],
    ['ETXTBSY', /is in use as a program or as swap/],
    ['ENOENT', /needs a loop device, and this node has none .*load the kernel module loop/],
    ['EBUSY', /got no loop device/],
  ])('of an image without a loop device (%s) is reported', async (code, sentence) => {
    const attachLoop = () => {
      throw new SystemError('open', code, '/dev/loop-control')
    }
    await expect(open(nodeWith({ attachLoop }))).rejects.toThrow(sentence)
  })
})

describe('the file system on a disk', () => {
  it.each([
    ['rw', ['nouuid']],
    ['ro', ['nouuid', 'ro']],
  ])('gets the options of its type, and ro for read-only volumes: %s', async (write, wanted) => {
    let seen: readonly string[] = []
    const node = nodeWith({})
    const { createTree } = node.host.mounts
    node.host.mounts.createTree = (fsType, options, device) => {
      seen = options
      return createTree(fsType, options, device)
    }
    await open(node, { mountOptions: 'noatime,nouuid', 'kubernetes.io/readwrite': write })
    expect(seen).toEqual(wanted)
  })
})
