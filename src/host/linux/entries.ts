import type { Handle } from '../host.ts'
import { SYS_GETDENTS64 } from './constants.ts'
import { address, libc, run, view } from './libc.ts'

const buffer = view('entries')

/** getdents64(2): node:fs would read a directory of a million entries into memory at once, and turn names into text. */
export function readEntries(directory: Handle): Uint8Array {
  const size = run('getdents64', 'a directory', () =>
    libc.syscall(SYS_GETDENTS64, BigInt(directory), address('entries'), BigInt(buffer.length), 0n, 0n, 0n),
  )
  return Uint8Array.from(buffer.subarray(0, size))
}
