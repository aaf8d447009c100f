import type * as NodeFs from 'node:fs'
import { dirname } from 'node:path'

type Fs = Pick<
  typeof NodeFs,
  'closeSync' | 'fstatSync' | 'mkdirSync' | 'openSync' | 'renameSync' | 'rmdirSync' | 'statSync' | 'writeSync'
>

const LARGEST = 10 * 1024 * 1024
const KEPT = 3
// A rotation is a few renames: whoever needs so many milliseconds has died.
const LONGEST_ROTATION = 60_000

/** The log and what was rotated away, the newest first. */
export function generations(file: string): string[] {
  return [file, ...Array.from({ length: KEPT }, (_, index) => `${file}.${index + 1}`)]
}

/**
 * Appends one line. Never throws: a full disk or an unwritable log must not fail a mount.
 * At 10 MiB the file becomes `.1`, which becomes `.2`, which becomes `.3`: at most 40 MiB in all.
 */
export function appendLine(fs: Fs, file: string, line: string, largest = LARGEST): void {
  try {
    const fd = openLog(fs, file)
    try {
      // One write with O_APPEND: lines of concurrent calls do not mix.
      fs.writeSync(fd, `${line}\n`)
      if (fs.fstatSync(fd).size >= largest) rotate(fs, file, fd)
    } finally {
      fs.closeSync(fd)
    }
  } catch {
    // There is no better place to complain: stdout and stderr belong to kubelet.
  }
}

function openLog(fs: Fs, file: string): number {
  try {
    return fs.openSync(file, 'a', 0o640)
  } catch {
    fs.mkdirSync(dirname(file), { recursive: true, mode: 0o750 })
    return fs.openSync(file, 'a', 0o640)
  }
}

/**
 * Several calls may come here at once: one at a time moves files, and only if the one it wrote to still has the name.
 * A check alone would not do: what is renamed by name may have become the next file since.
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
    if (fs.statSync(file).ino !== fs.fstatSync(fd).ino) return
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
