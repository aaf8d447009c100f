import { closeSync, fchmodSync, writeSync } from 'node:fs'
import { MFD_CLOEXEC, SYS_MEMFD_CREATE } from './constants.ts'
import { libc, put, run } from './libc.ts'

/**
 * A file without a name, in memory: it is gone with the last process that holds it, however that ends. Closed on
 * exec: only the child that it is handed to has it.
 * @returns its file descriptor
 */
export function openMemoryFile(content: Uint8Array): number {
  const fd = run('memfd_create', 'a secret', () =>
    libc.syscall(SYS_MEMFD_CREATE, put('name', 'modekeep'), BigInt(MFD_CLOEXEC), 0n, 0n, 0n, 0n),
  )
  try {
    fchmodSync(fd, 0o400)
    for (let at = 0; at < content.length; ) at += writeSync(fd, content, at)
    return fd
  } catch (error) {
    closeSync(fd)
    throw error
  }
}
