import { type Handle, SystemError } from '../host.ts'
import { BLOCK, DATA, data, done, putEmpty, systemCall } from './kernel.ts'

const readlinkat = systemCall('readlinkat')
const fstatfs = systemCall('fstatfs')

// struct statfs (x86-64 and arm64) and include/uapi/linux/magic.h; the flag is of Linux 5.10.
const F_TYPE = 0
const F_FLAGS = 80
const ST_NOSYMFOLLOW = 0x2000n
const PROC_SUPER_MAGIC = 0x9fa0n
const SECURITYFS_MAGIC = 0x73636673n

export function readLink(handle: Handle): Uint8Array {
  refuseUnfollowed(handle)
  const size = done(readlinkat(handle, putEmpty(), DATA, BLOCK), 'readlinkat', 'a link')
  return Uint8Array.from(data.subarray(0, size))
}

/** Magic links, whose text is not where they lead, are in these two file systems alone. */
function refuseUnfollowed(handle: Handle): void {
  done(fstatfs(handle, DATA), 'fstatfs', 'a link')
  const type = data.readBigUInt64LE(F_TYPE)
  const flags = data.readBigUInt64LE(F_FLAGS)
  if (type === PROC_SUPER_MAGIC || type === SECURITYFS_MAGIC || flags & ST_NOSYMFOLLOW) {
    throw new SystemError('readlinkat', 'ELOOP', 'a link')
  }
}
