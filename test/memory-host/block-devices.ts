import type { BlockDevices } from '../../src/host/host.ts'
import { SystemError } from '../../src/host/host.ts'
import type { MemoryWorld } from './world.ts'

function none(): never {
  throw new SystemError('open', 'ENXIO', 'a block device in memory')
}

/** Disks are the kernel's, but for what a file system of the world says that it lies on. */
export const memoryBlockDevices = (world: MemoryWorld): BlockDevices => ({
  backingOf(handle) {
    const { id, disk = [] } = world.at(handle).mount.fileSystem
    return { place: id, shown: disk.join(', '), identities: disk }
  },
  asBacking: () => ({ place: '', shown: '', identities: [] }),
  open: none,
  isReadOnly: none,
  nameOf: none,
  isShownBy: none,
  start: none,
  loopOf: () => undefined,
  attachLoop: none,
  devicesOf: () => [],
  isClaimed: () => false,
  findUsers: () => ({ isMounted: false, processes: [] }),
})
