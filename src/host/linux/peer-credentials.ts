import { DATA, data, systemCall } from './kernel.ts'

const peerCredentials = systemCall('peer_credentials')

/** struct ucred: a process, a user and a group, of 32 bits each. */
const UCRED_SIZE = 12
const USER_OFFSET = 4
/** Where its length lies behind it. */
const LENGTH_OFFSET = 16

/**
 * The user who has connected to a unix socket, at that moment, as this user namespace knows him.
 * @param fd the connection's. @returns undefined where the kernel does not say
 */
export function readPeerUser(fd: number): number | undefined {
  data.writeUInt32LE(UCRED_SIZE, LENGTH_OFFSET)
  if (peerCredentials(fd, 0, 0, DATA, DATA + LENGTH_OFFSET) !== 0 || data.readUInt32LE(LENGTH_OFFSET) !== UCRED_SIZE)
    return undefined
  return data.readUInt32LE(USER_OFFSET)
}
