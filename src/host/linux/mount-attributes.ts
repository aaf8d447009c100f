import type { Handle } from '../host.ts'
import { AT_EMPTY_PATH, SYS_MOUNT_SETATTR } from './constants.ts'
import { address, libc, put, run, view } from './libc.ts'

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
  run('mount_setattr', 'the new mount', () => {
    const attr = view('struct')
    for (const [index, field] of [set, clear, propagation, userNamespace].entries()) {
      attr.writeBigUInt64LE(BigInt(field), index * 8)
    }
    return libc.syscall(
      SYS_MOUNT_SETATTR,
      BigInt(tree),
      put('name', ''),
      BigInt(AT_EMPTY_PATH),
      address('struct'),
      32n,
      0n,
    )
  })
}
