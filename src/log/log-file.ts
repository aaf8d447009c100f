import type * as NodeFs from 'node:fs'
import { dirname } from 'node:path'

type Fs = Pick<
  typeof NodeFs,
  'closeSync' | 'fstatSync' | 'mkdirSync' | 'openSync' | 'renameSync' | 'statSync' | 'writeSync'
>

const LARGEST = 10 * 1024 * 1024
const KEPT = 3

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

/** Two calls may come here at once: only the one whose file still has the name moves it. */
function rotate(fs: Fs, file: string, fd: number): void {
  if (fs.statSync(file).ino !== fs.fstatSync(fd).ino) return
  for (let n = KEPT; n > 0; n--) {
    try {
      fs.renameSync(n === 1 ? file : `${file}.${n - 1}`, `${file}.${n}`)
    } catch {
      // That many generations do not exist yet.
    }
  }
}
