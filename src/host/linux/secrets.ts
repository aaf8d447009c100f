import { fchmodSync, writeSync } from 'node:fs'
import { DATA, data, putName, requireSuccess, systemCall } from './kernel.ts'
import { close } from './open.ts'

const limitCore = systemCall('limit_core')
const memfdCreate = systemCall('memfd_create')

const MFD_CLOEXEC = 1

/**
 * Disables core dumps of all programs that this process starts later. The loader has disabled those of this process.
 * @throws {SystemError}
 */
export function forbidCoreDumps(): void {
  // fs/coredump.c: a program to which core_pattern pipes receives a core at any limit except 1.
  if (setCoreLimit(1n) < 0) {
    // The caller had set a hard limit of 0, and raising it needs CAP_SYS_RESOURCE.
    requireSuccess(setCoreLimit(0n), 'prlimit64', 'RLIMIT_CORE')
  }
}

/** @param bytes the soft and the hard limit of a struct rlimit */
function setCoreLimit(bytes: bigint): number {
  data.writeBigUInt64LE(bytes, 0)
  data.writeBigUInt64LE(bytes, 8)
  return limitCore(0, 0, DATA)
}

/**
 * Creates a nameless file in memory. The kernel frees it after the last process that has it open, also after a crash.
 * Close-on-exec limits it to the child that receives it.
 * @returns its file descriptor
 */
export function openMemoryFile(content: Uint8Array): number {
  const fd = requireSuccess(memfdCreate(putName('modekeep'), MFD_CLOEXEC), 'memfd_create', 'a secret')
  try {
    fchmodSync(fd, 0o400)
    for (let at = 0; at < content.length; ) at += writeSync(fd, content, at)
    return fd
  } catch (error) {
    close(fd)
    throw error
  }
}
