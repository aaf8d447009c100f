import { errorCode, type Handle } from '../host.ts'
import { O_CLOEXEC, O_DIRECTORY, O_RDONLY } from './constants.ts'
import { DATA, data, done, systemCall } from './kernel.ts'
import { close, openAt } from './open.ts'

const fsUuid = systemCall('fs_uuid')
const fstatfs = systemCall('fstatfs')

/** The file system's UUID (Linux 6.9), else statfs' f_fsid: not st_dev, which a reboot may hand to another disk. */
export function fileSystemId(handle: Handle): string {
  return uuidOf(handle) ?? fsidOf(handle)
}

function uuidOf(handle: Handle): string | undefined {
  // ioctl(2) refuses an O_PATH descriptor.
  const readable = openDirectory(handle)
  if (readable === undefined) return undefined
  try {
    const uuid = askUuid(readable, 'a volume')
    // An image made without one has all zeroes, like every other such image.
    return uuid.some((byte) => byte !== 0) ? uuid.toString('hex') : undefined
  } catch (error) {
    const code = errorCode(error)
    if (code === 'ENOTTY' || code === 'EINVAL' || code === 'ENOSYS' || code === 'ENOTSUP') return undefined
    throw error
  } finally {
    close(readable)
  }
}

/**
 * What FS_IOC_GETFSUUID (Linux 6.9) says of the file system a readable descriptor is on.
 * @throws {SystemError} ENOTTY where the file system has none, or the kernel does not know the question
 */
export function askUuid(readable: number, target: string): Buffer {
  // struct fsuuid2: length, bytes.
  done(fsUuid(readable, 0, DATA), 'FS_IOC_GETFSUUID', target)
  return Buffer.from(data.subarray(1, 1 + data.readUInt8(0)))
}

/** A volume may be a file, or a socket that nobody could open. */
function openDirectory(handle: Handle): number | undefined {
  try {
    return openAt(handle, '.', O_RDONLY | O_DIRECTORY | O_CLOEXEC, 'a volume')
  } catch (error) {
    if (errorCode(error) === 'ENOTDIR') return undefined
    throw error
  }
}

// struct statfs: f_type 8, f_bsize 8, five u64 counts, then f_fsid as two 32-bit words (x86-64 and arm64).
const F_FSID = 56

function fsidOf(handle: Handle): string {
  done(fstatfs(handle, DATA), 'fstatfs', 'a volume')
  return `${data.readUInt32LE(0).toString(16)}.${data.toString('hex', F_FSID, F_FSID + 8)}`
}
