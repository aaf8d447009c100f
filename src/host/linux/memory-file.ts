import { closeSync, fchmodSync, writeSync } from 'node:fs'
import { MFD_CLOEXEC } from './constants.ts'
import { done, put, systemCall } from './kernel.ts'

const memfdCreate = systemCall('memfd_create')

/**
 * A file without a name, in memory: it is gone with the last process that holds it, however that ends. Closed on
 * exec: only the child that it is handed to has it.
 * @returns its file descriptor
 */
export function openMemoryFile(content: Uint8Array): number {
  const fd = done(memfdCreate(put('modekeep'), MFD_CLOEXEC), 'memfd_create', 'a secret')
  try {
    fchmodSync(fd, 0o400)
    for (let at = 0; at < content.length; ) at += writeSync(fd, content, at)
    return fd
  } catch (error) {
    closeSync(fd)
    throw error
  }
}
