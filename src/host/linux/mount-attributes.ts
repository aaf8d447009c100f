import type { Handle } from '../host.ts'
import { AT_EMPTY_PATH } from './constants.ts'
import { DATA, data, done, putEmpty, systemCall } from './kernel.ts'

const mountSetattr = systemCall('mount_setattr')

/** struct mount_attr (include/uapi/linux/mount.h). */
interface MountAttributes {
  set: number
  clear: number
  propagation: number
  /** A file descriptor, read only with MOUNT_ATTR_IDMAP. */
  userNamespace: number
}

/** mount_setattr(2), Linux 5.12, on the one mount whose root the handle holds. */
export function setMountAttributes(tree: Handle, attributes: MountAttributes): void {
  const { set, clear, propagation, userNamespace } = attributes
  for (const [index, field] of [set, clear, propagation, userNamespace].entries()) {
    data.writeBigUInt64LE(BigInt(field), index * 8)
  }
  done(mountSetattr(tree, putEmpty(), AT_EMPTY_PATH, DATA), 'mount_setattr', 'the new mount')
}
