import type * as NodeFs from 'node:fs'
import { dirname } from 'node:path'
import { withPath } from './file-error.ts'
import { errorCode, type TrustedFiles } from './host.ts'
import { readText } from './read-text.ts'
import { type RegularFs, readBounded } from './regular-file.ts'

type Fs = RegularFs &
  Pick<
    typeof NodeFs,
    | 'fchmodSync'
    | 'fsyncSync'
    | 'mkdirSync'
    | 'readdirSync'
    | 'readFileSync'
    | 'renameSync'
    | 'rmdirSync'
    | 'rmSync'
    | 'writeFileSync'
  >

const PRIVATE = 0o600
const MOST_FOREIGN = 1 << 20

/** Files below directories that only root can write; `fs` is node:fs or memfs. */
export function trustedFiles(fs: Fs): TrustedFiles {
  return {
    read(path) {
      return withPath('read', path, () => unlessMissing(() => readText(path, fs)))
    },

    readForeign(path) {
      return withPath('read', path, () => unlessMissing(() => readBounded(fs, path, MOST_FOREIGN)))
    },

    replace(path, text, mode = PRIVATE) {
      withPath('write', path, () => replaceIn(fs, path, text, mode))
    },

    remove(path) {
      withPath('remove', path, () => {
        fs.rmSync(path, { force: true })
        fs.rmSync(temporaryOf(path), { force: true })
      })
    },

    makeDirectory(path) {
      withPath('make', path, () => makeWithParents(fs, path))
    },

    removeEmpty(path, top) {
      for (let here = path; here.startsWith(`${top}/`); here = dirname(here)) {
        try {
          fs.rmdirSync(here)
        } catch (error) {
          if (errorCode(error) === 'ENOENT') continue
          return
        }
      }
    },

    write(path, bytes) {
      withPath('write', path, () => fs.writeFileSync(path, bytes))
    },

    list(path) {
      return withPath('list', path, () => unlessMissing(() => fs.readdirSync(path))) ?? []
    },
  }
}

function makeWithParents(fs: Fs, path: string): void {
  try {
    fs.mkdirSync(path, { recursive: true, mode: 0o700 })
  } catch (error) {
    // Node's answer too where a file system is read-only, over its quota or broken: one by one they say so.
    if (errorCode(error) !== 'ENOENT' || dirname(path) === path) throw error
    makeWithParents(fs, dirname(path))
    makeOne(fs, path)
  }
}

function makeOne(fs: Fs, path: string): void {
  try {
    fs.mkdirSync(path, { mode: 0o700 })
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') throw error
  }
}

function replaceIn(fs: Fs, path: string, text: string, mode: number): void {
  const temporary = temporaryOf(path)
  try {
    const fd = openNew(fs, temporary, mode)
    try {
      fs.writeFileSync(fd, text)
      // Whatever the umask takes from it.
      if (mode !== PRIVATE) fs.fchmodSync(fd, mode)
      fs.fsyncSync(fd)
    } finally {
      fs.closeSync(fd)
    }
    fs.renameSync(temporary, path)
  } catch (error) {
    // On a full disk it would be in the way of removing the directory.
    fs.rmSync(temporary, { force: true })
    throw error
  }
  syncDirectory(fs, dirname(path))
}

/** Exclusive: no link of this name is followed, and what a process that died has left is not written to. */
function openNew(fs: Fs, path: string, mode: number): number {
  try {
    return fs.openSync(path, 'wx', mode)
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') throw error
    fs.rmSync(path)
    return fs.openSync(path, 'wx', mode)
  }
}

/** Left behind where a process died between writing and renaming. */
function temporaryOf(path: string): string {
  return `${path}.new`
}

/** What would lie in a file that is no directory is missing too. */
function unlessMissing<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes(errorCode(error) ?? '')) return undefined
    throw error
  }
}

function syncDirectory(fs: Fs, path: string): void {
  const fd = fs.openSync(path, 'r')
  try {
    fs.fsyncSync(fd)
  } finally {
    fs.closeSync(fd)
  }
}
