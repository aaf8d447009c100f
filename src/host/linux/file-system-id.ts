import { errorCode, type Handle } from '../host.ts'
import { FS_IOC_GETFSUUID, O_CLOEXEC, O_DIRECTORY, O_RDONLY } from './constants.ts'
import { address, libc, put, run, view } from './libc.ts'

/** The file system's UUID (Linux 6.9), else statfs' f_fsid: not st_dev, which a reboot may hand to another disk. */
export function fileSystemId(handle: Handle): string {
  return uuidOf(handle) ?? fsidOf(handle)
}

function uuidOf(handle: Handle): string | undefined {
  // ioctl(2) refuses an O_PATH descriptor.
  const readable = openDirectory(handle)
  if (readable === undefined) return undefined
  try {
    run('FS_IOC_GETFSUUID', 'a volume', () => libc.ioctl(readable, FS_IOC_GETFSUUID, address('struct')))
    const length = view('struct').readUInt8(0)
    const uuid = view('struct').subarray(1, 1 + length)
    // An image made without one has all zeroes, like every other such image.
    return uuid.some((byte) => byte !== 0) ? uuid.toString('hex') : undefined
  } catch (error) {
    const code = errorCode(error)
    if (code === 'ENOTTY' || code === 'EINVAL' || code === 'ENOSYS' || code === 'ENOTSUP') return undefined
    throw error
  } finally {
    libc.close(readable)
  }
}

/** A volume may be a file, or a socket that nobody could open. */
function openDirectory(handle: Handle): number | undefined {
  try {
    return run('openat', 'a volume', () => libc.openat(handle, put('name', '.'), O_RDONLY | O_DIRECTORY | O_CLOEXEC))
  } catch (error) {
    if (errorCode(error) === 'ENOTDIR') return undefined
    throw error
  }
}

// struct statfs: f_type 8, f_bsize 8, five u64 counts, then f_fsid as two 32-bit words (x86-64 and arm64).
const F_FSID = 56

function fsidOf(handle: Handle): string {
  run('fstatfs', 'a volume', () => libc.fstatfs(handle, address('struct')))
  const type = view('struct').readUInt32LE(0).toString(16)
  return `${type}.${view('struct')
    .subarray(F_FSID, F_FSID + 8)
    .toString('hex')}`
}
