import { DATA, data, systemCall } from './kernel.ts'

const peerCredentials = systemCall('peer_credentials')

/** struct ucred: a process, a user and a group, of 32 bits each. */
const UCRED = 12
const USER = 4
/** Where its length lies behind it. */
const LENGTH = 16

/**
 * The user who has connected to a unix socket, at that moment, as this user namespace knows him.
 * @param fd the connection's. @returns undefined where the kernel does not say
 */
export function peerUser(fd: number): number | undefined {
  data.writeUInt32LE(UCRED, LENGTH)
  if (peerCredentials(fd, 0, 0, DATA, DATA + LENGTH) !== 0 || data.readUInt32LE(LENGTH) !== UCRED) return undefined
  return data.readUInt32LE(USER)
}
