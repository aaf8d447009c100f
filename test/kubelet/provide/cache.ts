import * as fs from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'

/** The user's cache directory of this project. Whatever is missing in it is made again. */
export const CACHE = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'modekeep')

/**
 * The path of `name` in the cache; made by `make` in a directory beside it, if it is not there, and shown whole.
 * @param make gets the path to make: a file or a directory
 */
export function cached(name: string, make: (path: string) => void): string {
  const path = join(CACHE, name)
  if (fs.existsSync(path)) return path
  fs.mkdirSync(CACHE, { recursive: true })
  sweep()
  const work = fs.mkdtempSync(join(CACHE, `.making-${process.pid}-`))
  try {
    make(join(work, name))
    try {
      fs.renameSync(join(work, name), path)
    } catch (error) {
      // Another run was first.
      if (!fs.existsSync(path)) throw error
    }
    return path
  } finally {
    fs.rmSync(work, { recursive: true, force: true })
  }
}

/** Removes what runs that were interrupted have begun. */
function sweep(): void {
  for (const name of fs.readdirSync(CACHE)) {
    const [, pid] = /^\.making-(\d+)-/.exec(name) ?? []
    if (pid && !fs.existsSync(`/proc/${pid}`)) fs.rmSync(join(CACHE, name), { recursive: true, force: true })
  }
}
