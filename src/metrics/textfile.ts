import type * as NodeFs from 'node:fs'
import { basename, dirname } from 'node:path'
import { Refusal, show } from '../refusal/refusal.ts'

type Fs = Pick<
  typeof NodeFs,
  'closeSync' | 'fchmodSync' | 'fsyncSync' | 'openSync' | 'renameSync' | 'rmSync' | 'writeFileSync'
>

/** Everybody may read it: the collector is not root. */
const MODE = 0o644

/**
 * Exchanges a file for one with this text, whole and on disk. The directory may be another user's: no link is followed,
 * and nothing that is there is written to. Call it for one file at a time: what a process that died has left is
 * removed. The temporary name ends in no `.prom`, by which a collector goes.
 * @throws {Refusal} naming the file, and what the system said
 */
export function writeTextfile(fs: Fs, path: string, text: string): void {
  const temporary = `${dirname(path)}/.${basename(path)}.new`
  try {
    fs.rmSync(temporary, { force: true })
    writeNew(fs, temporary, text)
    try {
      fs.renameSync(temporary, path)
    } catch (error) {
      fs.rmSync(temporary, { force: true })
      throw error
    }
    sync(fs, dirname(path))
  } catch (error) {
    const said = (error as Error).message
    throw new Refusal(`--output ${show(path)} cannot be written (${said}): name a file in a directory that is there`, {
      cause: error,
    })
  }
}

function writeNew(fs: Fs, path: string, text: string): void {
  // Exclusive: a link of this name would not be followed.
  const fd = fs.openSync(path, 'wx', MODE)
  try {
    fs.writeFileSync(fd, text)
    // Whatever the umask.
    fs.fchmodSync(fd, MODE)
    fs.fsyncSync(fd)
  } catch (error) {
    fs.rmSync(path, { force: true })
    throw error
  } finally {
    fs.closeSync(fd)
  }
}

function sync(fs: Fs, directory: string): void {
  const fd = fs.openSync(directory, 'r')
  try {
    fs.fsyncSync(fd)
  } finally {
    fs.closeSync(fd)
  }
}
