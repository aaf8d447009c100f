import { type Handle, type Name, REGULAR } from '../host.ts'
import { AT_REMOVEDIR } from './constants.ts'
import { BLOCK, DATA, data, done, put, systemCall } from './kernel.ts'

const getdents64 = systemCall('getdents64')
const mknodat = systemCall('mknodat')
const mkdirat = systemCall('mkdirat')
const unlinkat = systemCall('unlinkat')

/** getdents64(2): node:fs would read a directory of a million entries into memory at once, and turn names into text. */
export function readEntries(directory: Handle): Uint8Array {
  const size = done(getdents64(directory, DATA, BLOCK), 'getdents64', 'a directory')
  return Uint8Array.from(data.subarray(0, size))
}

export function createFile(parent: Handle, name: Name, mode: number): void {
  done(mknodat(parent, put(name), REGULAR | mode), 'mknodat', name)
}

export function createDirectory(parent: Handle, name: Name, mode: number): void {
  done(mkdirat(parent, put(name), mode), 'mkdirat', name)
}

export function removeFile(parent: Handle, name: Name): void {
  done(unlinkat(parent, put(name), 0), 'unlinkat', name)
}

export function removeDirectory(parent: Handle, name: Name): void {
  done(unlinkat(parent, put(name), AT_REMOVEDIR), 'unlinkat', name)
}
