import { fchmodSync, writeSync } from 'node:fs'
import { DATA, data, putName, requireSuccess, systemCall } from './kernel.ts'
import { close } from './open.ts'

const limitCore = systemCall('limit_core')
const memfdCreate = systemCall('memfd_create')

const MFD_CLOEXEC = 1

/**
 * From now on no program that this process starts leaves an image of its memory when it crashes. Of this process itself
 * the loader has forbidden it. @throws {SystemError}
 */
export function forbidCoreDumps(): void {
  // fs/coredump.c: a program that core_pattern pipes to gets a core whatever the limit, unless that is 1.
  if (setCoreLimit(1n) < 0) {
    // The caller had forbidden core files by a hard limit of 0, which is not raised without CAP_SYS_RESOURCE.
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
 * A file without a name, in memory: it is gone with the last process that holds it, however that ends. Closed on
 * exec: only the child that it is handed to has it.
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
