import type { Stat } from '../host.ts'
import {
  STATX_ATTR_APPEND,
  STATX_ATTR_IMMUTABLE,
  STATX_ATTR_MOUNT_ROOT,
  STATX_BASIC_STATS,
  STATX_BTIME,
  STATX_MNT_ID,
  STATX_MNT_ID_UNIQUE,
} from './constants.ts'
import { address, libc, view } from './libc.ts'

const MASK = STATX_BASIC_STATS | STATX_BTIME | STATX_MNT_ID | STATX_MNT_ID_UNIQUE
const buffer = view('struct')
const data = new DataView(buffer.buffer, buffer.byteOffset, buffer.byteLength)
const at = address('struct')

/** Fills the arena's statx structure; returns what the call returned. */
export function callStatx(fd: number, name: bigint, flags: number): number {
  return libc.statx(fd, name, flags, MASK, at)
}

/** Reads what the last successful callStatx left (struct statx, include/uapi/linux/stat.h). */
export function readStat(): Stat {
  const mask = data.getUint32(0, true)
  return {
    device: data.getUint32(0x88, true) * 2 ** 20 + data.getUint32(0x8c, true),
    inode: data.getBigUint64(0x20, true),
    born: mask & STATX_BTIME ? nanoseconds(0x50) : 0n,
    changed: nanoseconds(0x60),
    modified: nanoseconds(0x70),
    size: data.getBigUint64(0x28, true),
    mode: data.getUint16(0x1c, true),
    uid: data.getUint32(0x14, true),
    gid: data.getUint32(0x18, true),
    links: data.getUint32(0x10, true),
    mountId: data.getBigUint64(0x90, true),
    mountRoot: (data.getUint32(0x08, true) & STATX_ATTR_MOUNT_ROOT) !== 0,
    immutable: (data.getUint32(0x08, true) & (STATX_ATTR_IMMUTABLE | STATX_ATTR_APPEND)) !== 0,
  }
}

function nanoseconds(offset: number): bigint {
  return data.getBigInt64(offset, true) * 1_000_000_000n + BigInt(data.getUint32(offset + 8, true))
}
