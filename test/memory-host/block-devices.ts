import { type BlockDeviceOperations, SystemError } from '../../src/kernel/host.ts'
import type { MemoryWorld } from './world.ts'

function throwUnsupported(): never {
  throw new SystemError('open', 'ENXIO', 'a block device in memory')
}

/** Only the identity of the disks below the world's file systems is simulated. */
export const memoryBlockDevices = (world: MemoryWorld): BlockDeviceOperations => ({
  backingOf(handle) {
    const { id, disk = [] } = world.at(handle).mount.fileSystem
    return { place: id, shown: disk.join(', '), identities: disk }
  },
  asBacking: () => ({ place: '', shown: '', identities: [] }),
  open: throwUnsupported,
  isReadOnly: throwUnsupported,
  nameOf: throwUnsupported,
  isShownBy: throwUnsupported,
  start: throwUnsupported,
  loopOf: () => undefined,
  attachLoop: throwUnsupported,
  devicesOf: () => [],
  isClaimed: () => false,
  findUsers: () => ({ isMounted: false, processes: [], copyNamespaces: [] }),
})
