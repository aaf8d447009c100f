import { basename, dirname } from 'node:path'
import { type Fs, nodeFs } from './node-fs.ts'
import { hasPathHandles, isOwnersFile, nameDirectory, O_PATH, openHandle } from './path-handle.ts'
import { SystemError, unless } from './system-error.ts'
import { heldParent, openParent, type Parent } from './write-file.ts'

const { O_DIRECTORY, O_NOFOLLOW } = nodeFs.constants

/**
 * Makes a directory, and those above it that do not exist, each below the handle of the one above. Links on the way are
 * followed as `openPathHandle` says, but none that appears in the place of a directory that is made.
 * @param modeAbove of the directories above it
 * @throws {SystemError} EPERM for a directory of another user than root and the one that modekeep runs as; ELOOP
 */
export function makeDirectories(fs: Fs, path: string, mode: number, modeAbove = mode): void {
  using made = openOrMake(fs, path, mode, modeAbove)
  requireOwned(fs, made)
}

function openOrMake(fs: Fs, path: string, mode: number, modeAbove: number): Parent {
  const found = unless('ENOENT', () => openParent(fs, path))
  if (found !== undefined) return found
  using above = openOrMake(fs, dirname(path), modeAbove, modeAbove)
  const made = makeIn(fs, above, basename(path), mode)
  try {
    requireOwned(fs, made)
    return made
  } catch (error) {
    made[Symbol.dispose]()
    throw error
  }
}

/** mkdir(2) in a directory that is held. Another process may have made it first. */
function makeIn(fs: Fs, parent: Parent, name: string, mode: number): Parent {
  const path = `${parent.path}/${name}`
  nameDirectory(parent.path, () => unless('EEXIST', () => fs.mkdirSync(parent.at(name), { mode })))
  if (!hasPathHandles(fs)) return openParent(fs, path)
  return heldParent(fs, path, openHandle(fs, parent.at(name), O_PATH | O_DIRECTORY | O_NOFOLLOW, path))
}

function requireOwned(fs: Fs, directory: Parent): void {
  if (isOwnersFile(fs.statSync(directory.at('.')))) return
  throw new SystemError('mkdir', 'EPERM', directory.path, 'it belongs to another user than root')
}
