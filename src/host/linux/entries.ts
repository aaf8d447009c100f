import { type Handle, type Name, REGULAR } from '../host.ts'
import { AT_REMOVEDIR, SYS_GETDENTS64, SYS_MKDIRAT, SYS_MKNODAT, SYS_UNLINKAT } from './constants.ts'
import { address, libc, put, run, view } from './libc.ts'

const buffer = view('entries')

/** getdents64(2): node:fs would read a directory of a million entries into memory at once, and turn names into text. */
export function readEntries(directory: Handle): Uint8Array {
  const size = run('getdents64', 'a directory', () =>
    libc.syscall(SYS_GETDENTS64, BigInt(directory), address('entries'), BigInt(buffer.length), 0n, 0n, 0n),
  )
  return Uint8Array.from(buffer.subarray(0, size))
}

export function createFile(parent: Handle, name: Name, mode: number): void {
  run('mknodat', name, () => change(SYS_MKNODAT, parent, name, REGULAR | mode))
}

export function createDirectory(parent: Handle, name: Name, mode: number): void {
  run('mkdirat', name, () => change(SYS_MKDIRAT, parent, name, mode))
}

export function removeFile(parent: Handle, name: Name): void {
  run('unlinkat', name, () => change(SYS_UNLINKAT, parent, name, 0))
}

export function removeDirectory(parent: Handle, name: Name): void {
  run('unlinkat', name, () => change(SYS_UNLINKAT, parent, name, AT_REMOVEDIR))
}

function change(call: bigint, parent: Handle, name: Name, how: number): bigint {
  return libc.syscall(call, BigInt(parent), put('name', name), BigInt(how), 0n, 0n, 0n)
}
