import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { onTestFinished } from 'vitest'

/** Milliseconds after which a file system is thawed in any case, so that a call that waits for it ends and its test fails. */
const LONGEST_FREEZE_MS = 60_000

/**
 * Mounts a file system of its own at a new directory of a group.
 * @param image path of its image, which is made
 */
export function makeFileSystem(image: string, point: string, group: number): void {
  fs.mkdirSync(point)
  execFileSync('truncate', ['-s', '32M', image])
  execFileSync('mkfs.ext4', ['-q', '-F', image])
  execFileSync('mount', ['-o', 'loop', image, point])
  onTestFinished(() => void execFileSync('umount', ['--lazy', point]))
  fs.chownSync(point, 0, group)
}

/**
 * Freezes a file system: the kernel makes each change wait until it is thawed, also one of a process that was killed. On kernels
 * before Linux 6.18 a directory that a process keeps locked does the same.
 * @returns thaws it
 */
export function freeze(point: string): () => void {
  execFileSync('fsfreeze', ['--freeze', point])
  let isFrozen = true
  const thaw = () => {
    clearTimeout(timer)
    if (isFrozen) execFileSync('fsfreeze', ['--unfreeze', point])
    isFrozen = false
  }
  const timer = setTimeout(thaw, LONGEST_FREEZE_MS)
  onTestFinished(thaw)
  return thaw
}
