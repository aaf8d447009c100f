import type { Handle, Name } from '../host.ts'
import { done, put, systemCall } from './kernel.ts'

const openat = systemCall('openat')
const closeHandle = systemCall('close')

/**
 * openat(2) of what exists.
 * @param target what a message calls it
 * @throws {SystemError}
 */
export function openAt(parent: number, name: Name | string, flags: number, target = name): Handle {
  return done(openat(parent, put(name), flags), 'openat', target) as Handle
}

/** close(2): Linux has closed a descriptor whatever it answers. */
export function close(handle: number): void {
  closeHandle(handle)
}
