import { type Handle, SystemError } from '../host.ts'
import { SYS_READLINKAT } from './constants.ts'
import { address, EMPTY_PATH, libc, run, view } from './libc.ts'

const LARGEST = 65536n

// struct statfs (x86-64 and arm64) and include/uapi/linux/magic.h; the flag is of Linux 5.10.
const F_TYPE = 0
const F_FLAGS = 80
const ST_NOSYMFOLLOW = 0x2000n
const PROC_SUPER_MAGIC = 0x9fa0n
const SECURITYFS_MAGIC = 0x73636673n

export function readLink(handle: Handle): Uint8Array {
  refuseUnfollowed(handle)
  const size = run('readlinkat', 'a link', () =>
    libc.syscall(SYS_READLINKAT, BigInt(handle), EMPTY_PATH, address('value'), LARGEST, 0n, 0n),
  )
  return Uint8Array.from(view('value').subarray(0, size))
}

/** Magic links, whose text is not where they lead, are in these two file systems alone. */
function refuseUnfollowed(handle: Handle): void {
  run('fstatfs', 'a link', () => libc.fstatfs(handle, address('struct')))
  const type = view('struct').readBigUInt64LE(F_TYPE)
  const flags = view('struct').readBigUInt64LE(F_FLAGS)
  if (type === PROC_SUPER_MAGIC || type === SECURITYFS_MAGIC || flags & ST_NOSYMFOLLOW) {
    throw new SystemError('readlinkat', 'ELOOP', 'a link')
  }
}
