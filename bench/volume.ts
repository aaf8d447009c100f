import * as fs from 'node:fs'
import { runCommand } from '../scripts/fetch/command.ts'
import type { FileSystem } from './options.ts'

// A sparse file: large enough that the journal has the size it has on a node's disks.
const IMAGE_SIZE = '16G'

/**
 * Mounts a new, empty file system at `at`, with room for so many inodes.
 * @throws {Error} with the reason, in the words of the command that refused
 */
export function mountVolume(fileSystem: FileSystem, at: string, inodes: number): void {
  fs.mkdirSync(at, { recursive: true })
  if (fileSystem === 'tmpfs') {
    runCommand('mount', ['-t', 'tmpfs', '-o', 'mode=0755,nr_inodes=0', 'bench', at])
    return
  }
  const image = `${at}.image`
  runCommand('truncate', ['-s', IMAGE_SIZE, image])
  // Lazily written inode tables would be written while somebody is measured.
  const eager = ['-E', 'lazy_itable_init=0,lazy_journal_init=0']
  if (fileSystem === 'ext4') runCommand('mkfs.ext4', ['-q', '-F', '-N', String(inodes), ...eager, image])
  else runCommand('mkfs.xfs', ['-q', image])
  runCommand('mount', ['-o', 'loop', image, at])
}

export function unmountVolume(at: string): void {
  runCommand('umount', [at])
  fs.rmSync(`${at}.image`, { force: true })
}

/** Writes out what earlier work left, so that nobody pays for it. */
export function settle(at: string): void {
  runCommand('sync', ['-f', at])
}
