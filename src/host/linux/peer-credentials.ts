import { DATA, data, systemCall } from './kernel.ts'

const peerCredentials = systemCall('peer_credentials')

/** struct ucred: a process, a user and a group, of 32 bits each. */
const UCRED_SIZE = 12
const USER_OFFSET = 4
/** Offset of the structure's length, after the structure. */
const LENGTH_OFFSET = 16

/**
 * Returns the user that connected to a unix socket, as a uid of this user namespace at the time of the connection.
 * @param fd of the connection @returns undefined if the kernel does not report it
 */
export function readPeerUser(fd: number): number | undefined {
  data.writeUInt32LE(UCRED_SIZE, LENGTH_OFFSET)
  if (peerCredentials(fd, 0, 0, DATA, DATA + LENGTH_OFFSET) !== 0 || data.readUInt32LE(LENGTH_OFFSET) !== UCRED_SIZE)
    return undefined
  return data.readUInt32LE(USER_OFFSET)
}
