import type { Handle } from './handle.ts'

/** A loop device that shows a file. */
export interface LoopDevice {
  /** Open; closed like any handle. */
  device: Handle
  isReadOnly: boolean
  /** Not a part of the file only. */
  isWhole: boolean
}

export interface BlockDevices {
  /** Opens a device by its node; it stays the same disk's as long as it is open. */
  open(node: Handle): Handle
  isReadOnly(device: Handle): boolean
  /** `/dev/sdb`, for messages and for the mount table. */
  nameOf(device: Handle): string
  /** Whether a row of the mount table is of this device, by whatever name. */
  isShownBy(device: Handle, row: { device: string; fsType: string; source: string }): boolean
  /** Up to `length` bytes from the start. */
  start(device: Handle, length: number): Uint8Array
  /** The loop device that shows the file already: two at once would both write to it, each with a cache of its own. */
  loopOf(image: Handle): LoopDevice | undefined
  /**
   * Makes a file a loop device, which goes when its last mount and the last handle of it are gone, however that comes.
   * @throws {SystemError} EBUSY where others take each free device first; ENOENT of `/dev/loop-control`
   */
  attachLoop(image: Handle, readOnly: boolean): Handle
}
