import type { Entry, Handle } from '../host.ts'
import { SYS_GETDENTS64 } from './constants.ts'
import { address, libc, run, view } from './libc.ts'

const buffer = view('entries')

/** getdents64(2): node:fs would read a directory of a million entries into memory at once, and turn names into text. */
export function readEntries(directory: Handle): Entry[] {
  for (;;) {
    const size = run('getdents64', 'a directory', () =>
      libc.syscall(SYS_GETDENTS64, BigInt(directory), address('entries'), BigInt(buffer.length), 0n, 0n, 0n),
    )
    if (size === 0) return []
    const entries = parseEntries(buffer.subarray(0, size))
    if (entries.length > 0) return entries
  }
}

/** struct linux_dirent64: u64 ino, s64 off, u16 reclen, u8 type, name. */
function parseEntries(bytes: Buffer): Entry[] {
  const entries: Entry[] = []
  for (let start = 0; start < bytes.length; ) {
    const length = bytes.readUInt16LE(start + 16)
    const name = bytes.subarray(start + 19, bytes.indexOf(0, start + 19))
    if (!isDots(name)) entries.push({ name: Uint8Array.from(name), next: bytes.readBigInt64LE(start + 8) })
    start += length
  }
  return entries
}

const DOT = 0x2e

function isDots(name: Uint8Array): boolean {
  return name[0] === DOT && (name.length === 1 || (name.length === 2 && name[1] === DOT))
}
