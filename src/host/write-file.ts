import { basename, dirname } from 'node:path'
import { Refusal } from '../refusal/refusal.ts'
import { type Fs, nodeFs } from './node-fs.ts'
import {
  closeQuietly,
  hasPathHandles,
  isOwnersFile,
  openGuardedDirectory,
  openPathHandle,
  type PathHandle,
  replaceHandlePath,
  reportDirectoryPath,
} from './path-handle.ts'
import { type OpenedFile, openFile, syncDirectory } from './read-file.ts'
import { errorCode, SystemError, tolerateErrno } from './system-error.ts'

const { O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK, O_TRUNC } = nodeFs.constants

/** A directory that is held while names in it are written: whatever has its path by then does not matter. */
export interface ParentDirectory extends Disposable {
  readonly path: string
  /** A path of one of its names, by the directory's handle. */
  at(name: string): string
  /** fsync(2): its names are on disk. */
  sync(): void
}

/**
 * Opens the directory in which a file is written. Links on the way are followed as `openPathHandle` says.
 * @throws {SystemError} ELOOP for a link that others could exchange
 */
export function openParent(fs: Fs, directory: string): ParentDirectory {
  if (hasPathHandles(fs)) return createParentDirectory(fs, directory, openPathHandle(fs, directory, O_DIRECTORY))
  closeQuietly(fs, fs.openSync(directory, 'r'))
  return createParentDirectory(fs, directory, { link: directory, [Symbol.dispose]: () => {} })
}

/** The same of a directory that `openGuardedDirectory` opens: names in it stay what they are between two calls. */
export function openGuardedParent(fs: Fs, directory: string): ParentDirectory {
  return createParentDirectory(fs, directory, openGuardedDirectory(fs, directory))
}

/** What `openParent` returns, of a directory that is held already. */
export function createParentDirectory(fs: Fs, path: string, handle: Omit<PathHandle, 'fd'>): ParentDirectory {
  const { link, [Symbol.dispose]: close } = handle
  return {
    path,
    at: (name) => `${link}/${name}`,
    sync: () => reportDirectoryPath(path, () => syncDirectory(fs, link)),
    [Symbol.dispose]: close,
  }
}

/**
 * The one way to open a file that is written in its place: no link is followed, no FIFO waited for.
 * @throws {SystemError} EPERM for what is not a regular file, has a second name, or belongs to another user than root and
 *   the one that modekeep runs as; the same for its directory
 */
export function openToWrite(fs: Fs, path: string, flags: number, mode: number): OpenedFile {
  using parent = openParent(fs, dirname(path))
  return openToWriteIn(fs, parent, basename(path), flags, mode)
}

/** The same in a directory that is held. */
export function openToWriteIn(fs: Fs, parent: ParentDirectory, name: string, flags: number, mode: number): OpenedFile {
  const path = `${parent.path}/${name}`
  const refuse = (why: string) => {
    throw new SystemError('open', 'EPERM', path, why)
  }
  if (!isOwnersFile(fs.statSync(parent.at('.')))) refuse('its directory belongs to another user than root')
  // Another's file is not emptied before it is known to be another's.
  const opening = (flags & ~O_TRUNC) | O_NOFOLLOW | O_NONBLOCK
  const fd = reportDirectoryPath(parent.path, () => fs.openSync(parent.at(name), opening, mode))
  try {
    const stat = fs.fstatSync(fd)
    if (!stat.isFile()) refuse('not a regular file')
    if (!isOwnersFile(stat)) refuse('it belongs to another user than root')
    // None: another process has just removed it.
    if (stat.nlink > 1) refuse('it has more than one name')
    if ((flags & O_TRUNC) !== 0) fs.ftruncateSync(fd)
  } catch (error) {
    closeQuietly(fs, fd)
    throw error
  }
  return { fd, [Symbol.dispose]: () => closeQuietly(fs, fd) }
}

/** A new file, in whosever directory. @throws the system's EEXIST where the name is taken */
export function createFileIn(fs: Fs, parent: ParentDirectory, name: string, mode: number): OpenedFile {
  // Exclusive: no link of this name is followed.
  return reportDirectoryPath(parent.path, () => openFile(fs, parent.at(name), 'wx', mode))
}

/** rename(2) of a name in a directory that is held. */
export function renameIn(fs: Fs, parent: ParentDirectory, from: string, to: string): void {
  reportDirectoryPath(parent.path, () => fs.renameSync(parent.at(from), parent.at(to)))
}

/** Removes names from a directory; those that are not there are none. */
export function removeNames(fs: Fs, directory: string, names: readonly string[]): void {
  using parent = tolerateErrno('ENOENT ENOTDIR', () => openParent(fs, directory))
  if (parent === undefined) return
  for (const name of names) removeIn(fs, parent, name)
}

/** Makes one call with the path of a name by its directory's handle: for calls that follow no link in that name. */
export function callByHandle<T>(fs: Fs, path: string, call: (at: string) => T): T {
  using parent = openParent(fs, dirname(path))
  return reportDirectoryPath(parent.path, () => call(parent.at(basename(path))))
}

/** One rename(2) between directories that are held. */
export function renamePath(fs: Fs, from: string, to: string): void {
  using source = openParent(fs, dirname(from))
  using target = openParent(fs, dirname(to))
  const [before, after] = [source.at(basename(from)), target.at(basename(to))]
  try {
    fs.renameSync(before, after)
  } catch (error) {
    throw replaceHandlePath(replaceHandlePath(error, before, from), after, to)
  }
}

/** The names in a directory. @throws as `openParent` */
export function listNames(fs: Fs, directory: string): string[] {
  using parent = openParent(fs, directory)
  return reportDirectoryPath(directory, () => fs.readdirSync(parent.at('.')))
}

export function removeIn(fs: Fs, parent: ParentDirectory, name: string): void {
  reportDirectoryPath(parent.path, () => fs.rmSync(parent.at(name), { force: true }))
}

/** Left behind where a process died between writing and renaming. */
export const formatTemporaryName = (name: string): string => `${name}.new`

/** Writes a file as a whole: a temporary one that gets its name. @param isForNow it need not outlive a crash of the node */
export function replaceFile(fs: Fs, path: string, text: string, mode: number, isForNow = false): void {
  using parent = openParent(fs, dirname(path))
  const name = basename(path)
  const temporary = formatTemporaryName(name)
  try {
    writeNewFile(fs, parent, temporary, { text, mode, isForNow })
    renameIn(fs, parent, temporary, name)
  } catch (error) {
    // On a full disk it would be in the way of removing the directory.
    removeIn(fs, parent, temporary)
    throw error
  }
  if (!isForNow) parent.sync()
}

const PRIVATE = 0o600

function writeNewFile(
  fs: Fs,
  parent: ParentDirectory,
  name: string,
  { text, mode, isForNow }: { text: string; mode: number; isForNow: boolean },
): void {
  // Whatever a process that died has left is not written to.
  const first = tolerateErrno('EEXIST', () => createFileIn(fs, parent, name, mode))
  if (first === undefined) removeIn(fs, parent, name)
  using file = first ?? createFileIn(fs, parent, name, mode)
  fs.writeFileSync(file.fd, text)
  // Whatever the umask takes from it.
  if (mode !== PRIVATE) fs.fchmodSync(file.fd, mode)
  if (!isForNow) fs.fsyncSync(file.fd)
}

/**
 * Refuses what is not modekeep's own at a path that a library opens by itself, after this check: so nobody else may be able
 * to exchange a directory of the path either.
 * @throws {Refusal} where others can; {SystemError} as `openToWrite`; nothing where no file is there
 */
export function assertOwnFiles(fs: Fs, directory: string, names: readonly string[]): void {
  using parent = tolerateErrno('EPERM', () => openGuardedParent(fs, directory))
  if (parent === undefined) {
    throw new Refusal(
      `users other than root can replace files in ${directory}: chown root and chmod go-w the directories of its path`,
    )
  }
  for (const name of names) {
    const stat = tolerateErrno('ENOENT', () => fs.lstatSync(parent.at(name)))
    if (stat === undefined || (stat.isFile() && isOwnersFile(stat) && stat.nlink <= 1)) continue
    throw new SystemError('open', 'EPERM', `${directory}/${name}`, 'not a regular file of root with one name')
  }
}

/** Whether the system refused because of what is at a path, and not because nothing is there. */
export function isRefusedPath(error: unknown): boolean {
  return ['EPERM', 'EINVAL', 'ELOOP', 'ENXIO'].includes(errorCode(error) ?? '')
}
