import { Refusal } from '../refusal/refusal.ts'
import { type Fs, nodeFs, openToRead, readUpTo } from './read-file.ts'
import { errorCode } from './system-error.ts'

const MAX_BYTES = 1 << 20
const OTHERS_WRITE = 0o022

const REASONS: Readonly<Record<string, string>> = {
  EINVAL: 'is no regular file: write one there',
  ELOOP:
    'is behind a symbolic link that users other than root can exchange: chown root and chmod go-w the directories of its path',
}

/**
 * Reads a file that decides what root mounts and runs. It must be a regular file of at most 1 MiB. It must belong to
 * root or to modekeep's own user, and no other user may write to it. The checks apply to the opened file.
 * @returns undefined if there is no file
 * @throws {Refusal} a message with the path, the owner, the mode and the remedy
 */
export function readOwned(path: string, fs: Fs = nodeFs): Buffer | undefined {
  try {
    using file = openToRead(fs, path)
    const fault = describeOwnerFault(path, file.stat)
    if (fault !== undefined) throw new Refusal(fault)
    const bytes = readUpTo(fs, file.fd, MAX_BYTES + 1)
    if (bytes.length > MAX_BYTES) throw new Refusal(`${path} is larger than 1 MiB: write a configuration there`)
    return bytes
  } catch (error) {
    const code = errorCode(error)
    if (code === undefined) throw error
    if (code === 'ENOENT') return undefined
    throw new Refusal(`${path} ${REASONS[code] ?? `cannot be read (${code})`}`, { cause: error })
  }
}

function describeOwnerFault(path: string, { uid, mode }: { uid: number; mode: number }): string | undefined {
  const permissions = (mode & 0o7777).toString(8).padStart(4, '0')
  const remedySubject = `${path}, after a look at what is in it`
  if (uid !== 0 && uid !== process.geteuid?.()) {
    return `${path} belongs to uid ${uid} (mode ${permissions}), so it is not used: chown root ${remedySubject}`
  }
  if ((mode & OTHERS_WRITE) === 0) return undefined
  return `${path} can be written by others than its owner (mode ${permissions}, uid ${uid}), so it is not used: chmod go-w ${remedySubject}`
}
