import { DATA, data, systemCall } from './kernel.ts'

// Since Linux 6.8 the kernel reports single mounts. Before, the same facts need the complete mount table.
const statmount = systemCall('statmount')
const listmount = systemCall('listmount')

// include/uapi/linux/mount.h: struct mnt_id_req, struct statmount.
const STATMOUNT_MNT_BASIC = 0x2n
const STATMOUNT_FS_TYPE = 0x20n
const REQUEST_SIZE = 24
const REPLY = REQUEST_SIZE
const REPLY_SIZE = 1024
const [FS_TYPE, MNT_ATTR, TEXT] = [36, 64, 512]

/** Calls statmount(2), because statfs(2) would query a server. */
export function readMountType(mountId: number): string | undefined {
  putRequest(mountId, STATMOUNT_FS_TYPE)
  if (statmount(DATA, DATA + REPLY, REPLY_SIZE) !== 0) return undefined
  const start = REPLY + TEXT + data.readUInt32LE(REPLY + FS_TYPE)
  return data.toString('latin1', start, data.indexOf(0, start))
}

/** Calls statmount(2), because fstatfs(2) would query a server. */
export function readMountAttributes(mountId: number): number | undefined {
  putRequest(mountId, STATMOUNT_MNT_BASIC)
  if (statmount(DATA, DATA + REPLY, REPLY_SIZE) !== 0) return undefined
  return Number(data.readBigUInt64LE(REPLY + MNT_ATTR))
}

/** Calls listmount(2) with room for one mount. */
export function hasMountsOn(mountId: number): boolean | undefined {
  putRequest(mountId, 0n)
  const count = listmount(DATA, DATA + REPLY)
  return count < 0 ? undefined : count > 0
}

function putRequest(mountId: number, parameter: bigint): void {
  data.fill(0, 0, REQUEST_SIZE)
  data.writeUInt32LE(REQUEST_SIZE, 0)
  data.writeBigUInt64LE(BigInt(mountId), 8)
  data.writeBigUInt64LE(parameter, 16)
}
