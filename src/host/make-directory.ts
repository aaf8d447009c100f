import { basename, dirname } from 'node:path'
import { type Fs, nodeFs } from './node-fs.ts'
import { hasPathHandles, isOwnersFile, O_PATH, openHandle, reportDirectoryPath } from './path-handle.ts'
import { errorCode, SystemError, tolerateErrno } from './system-error.ts'
import { createParentDirectory, openParent, type ParentDirectory } from './write-file.ts'

const { O_DIRECTORY, O_NOFOLLOW } = nodeFs.constants

/**
 * Creates a directory and its missing parents, each through its parent's handle. Existing links are followed as
 * `openPathHandle` documents. A link that replaces a new directory is not followed.
 * @param modeAbove mode of the new parents
 * @throws {SystemError} EPERM for a directory of a user other than root and modekeep's own; ELOOP
 */
export function makeDirectories(fs: Fs, path: string, mode: number, modeAbove = mode): void {
  using directory = openOrMakeDirectory(fs, path, mode, modeAbove)
  assertOwned(fs, directory)
}

function openOrMakeDirectory(fs: Fs, path: string, mode: number, modeAbove: number): ParentDirectory {
  const existing = tolerateErrno('ENOENT', () => openParent(fs, path))
  if (existing !== undefined) return existing
  using parent = openOrMakeDirectory(fs, dirname(path), modeAbove, modeAbove)
  const directory = makeDirectoryIn(fs, parent, basename(path), mode)
  try {
    assertOwned(fs, directory)
    return directory
  } catch (error) {
    directory[Symbol.dispose]()
    throw error
  }
}

/**
 * Calls mkdir(2) in an open directory. An existing directory is accepted, because another process may make it first.
 */
function makeDirectoryIn(fs: Fs, parent: ParentDirectory, name: string, mode: number): ParentDirectory {
  const path = `${parent.path}/${name}`
  reportDirectoryPath(parent.path, () => tolerateErrno('EEXIST', () => fs.mkdirSync(parent.at(name), { mode })))
  if (!hasPathHandles(fs)) return openParent(fs, path)
  return createParentDirectory(fs, path, openHandle(fs, parent.at(name), O_PATH | O_DIRECTORY | O_NOFOLLOW, path))
}

function assertOwned(fs: Fs, directory: ParentDirectory): void {
  if (isOwnersFile(fs.statSync(directory.at('.')))) return
  throw new SystemError('mkdir', 'EPERM', directory.path, 'it belongs to another user than root')
}

/** More than the concurrent calls that remove and create one directory. */
const MAX_ATTEMPTS = 100

/**
 * Retries on ENOENT, because another call may remove an empty directory before something is created in it. `operation` must
 * create the directory again each time.
 * @throws the errors of `operation`, and ENOENT after the last attempt
 */
export function retryWhileRemoved<T>(operation: () => T): T {
  for (let attempt = 1; ; attempt++) {
    try {
      return operation()
    } catch (error) {
      if (errorCode(error) !== 'ENOENT' || attempt === MAX_ATTEMPTS) throw error
    }
  }
}
