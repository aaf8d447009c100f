import { basename, dirname } from 'node:path'
import { makeDirectories } from '../host/make-directory.ts'
import { type Fs, nodeFs } from '../host/node-fs.ts'
import { unless } from '../host/system-error.ts'
import { openParent, openToWriteIn, type Parent } from '../host/write-file.ts'

const LARGEST = 10 * 1024 * 1024
const KEPT = 3
const { O_APPEND, O_CREAT, O_WRONLY } = nodeFs.constants
// A rotation is a few renames: whoever needs so many milliseconds has died.
const LONGEST_ROTATION = 60_000

/** The log and what was rotated away, the newest first. */
export function generations(file: string): string[] {
  return [file, ...Array.from({ length: KEPT }, (_, index) => `${file}.${index + 1}`)]
}

/**
 * Appends one line. Never throws: a full disk, or a log that others than root could have put there, must not fail a mount.
 * At 10 MiB the file becomes `.1`, which becomes `.2`, which becomes `.3`: at most 40 MiB in all.
 */
export function appendLine(fs: Fs, file: string, line: string, largest = LARGEST): void {
  try {
    using parent = openLogDirectory(fs, dirname(file))
    const name = basename(file)
    using log = openToWriteIn(fs, parent, name, O_WRONLY | O_CREAT | O_APPEND, 0o640)
    // One write with O_APPEND: lines of concurrent calls do not mix.
    fs.writeSync(log.fd, `${line}\n`)
    if (fs.fstatSync(log.fd).size >= largest) rotate(fs, parent.at(name), log.fd)
  } catch {
    // There is no better place to complain: stdout and stderr belong to kubelet.
  }
}

function openLogDirectory(fs: Fs, directory: string): Parent {
  const found = unless('ENOENT', () => openParent(fs, directory))
  if (found !== undefined) return found
  makeDirectories(fs, directory, 0o750)
  return openParent(fs, directory)
}

/**
 * Several calls may come here at once: one at a time moves files, and only if the one it wrote to still has the name.
 * A check alone would not do: what is renamed by name may have become the next file since. rename(2) follows no link.
 * @param file the log in its directory's handle
 */
function rotate(fs: Fs, file: string, fd: number): void {
  const marker = `${file}.rotating`
  try {
    fs.mkdirSync(marker)
  } catch {
    // Another call rotates. What one that died has left is removed: the next call may.
    if (Date.now() - fs.statSync(marker).mtimeMs > LONGEST_ROTATION) fs.rmdirSync(marker)
    return
  }
  try {
    if (fs.lstatSync(file).ino !== fs.fstatSync(fd).ino) return
    const names = generations(file)
    for (let n = KEPT; n > 0; n--) {
      try {
        fs.renameSync(names[n - 1] ?? '', names[n] ?? '')
      } catch {
        // That many generations do not exist yet.
      }
    }
  } finally {
    fs.rmdirSync(marker)
  }
}
