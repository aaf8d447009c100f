import type { BlockDevices } from '../blocks.ts'
import { SystemError } from '../host.ts'

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
