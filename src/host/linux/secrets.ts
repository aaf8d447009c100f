import { fchmodSync, writeSync } from 'node:fs'
import { DATA, data, done, put, systemCall } from './kernel.ts'
import { close } from './open.ts'

const limitCore = systemCall('limit_core')
const memfdCreate = systemCall('memfd_create')

const MFD_CLOEXEC = 1

/** From now on a crash of this process, or of one it starts, leaves no image of its memory on a disk. */
export function forbidCoreDumps(): void {
  // struct rlimit
  data.fill(0, 0, 16)
  done(limitCore(0, 0, DATA), 'prlimit64', 'RLIMIT_CORE')
}

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
    close(fd)
    throw error
  }
}
