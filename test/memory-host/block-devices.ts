import type { BlockDevices } from '../../src/host/host.ts'
import { SystemError } from '../../src/host/host.ts'

function none(): never {
  throw new SystemError('open', 'ENXIO', 'a block device in memory')
}

/** Disks are the kernel's. */
export const noBlockDevices: BlockDevices = {
  open: none,
  isReadOnly: none,
  nameOf: none,
  isShownBy: none,
  start: none,
  loopOf: () => undefined,
  attachLoop: none,
}
