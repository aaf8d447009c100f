import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'

/**
 * Mounts an ext4 for temporary files: nfs-ganesha finds no file of a tmpfs by its handle.
 * @returns unmounts it
 */
export function mountTemporaryDisk(): () => void {
  const before = process.env.TMPDIR
  const directory = fs.mkdtempSync(`${tmpdir()}/modekeep-disk-`)
  execFileSync('truncate', ['-s', '512M', `${directory}.img`])
  execFileSync('mkfs.ext4', ['-q', `${directory}.img`])
  execFileSync('mount', ['-o', 'loop', `${directory}.img`, directory])
  process.env.TMPDIR = directory
  return () => {
    if (before === undefined) delete process.env.TMPDIR
    else process.env.TMPDIR = before
    execFileSync('umount', ['-l', directory])
    fs.rmdirSync(directory)
    fs.rmSync(`${directory}.img`)
  }
}
