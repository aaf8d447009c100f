import { basename, dirname } from 'node:path'
import { Refusal } from '../errors/refusal.ts'
import {
  closeQuietly,
  hasPathHandles,
  isOwnedByRootOrSelf,
  type NodeFsModule,
  nodeFs,
  O_PATH,
  openGuardedDirectory,
  openNameHandle,
  openPathHandle,
  type PathHandle,
  reportErrorsWithUserPaths,
  showDirectoryPathInErrors,
} from './path-handle.ts'
import { type OpenedFile, openFile, syncDirectory } from './read-file.ts'
import { SystemError, tolerateErrno } from './system-error.ts'

const { O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK, O_TRUNC } = nodeFs.constants

/** An open directory for changes of its names. Exchanging its path has no effect on them. */
export interface ParentDirectory extends Disposable {
  readonly path: string
  /** Returns the path of a name through the directory's handle. */
  at(name: string): string
  /** Makes the names in the directory durable by fsync(2). */
  sync(): void
}

/**
 * Opens the directory of a file to be written. Links are followed as `openPathHandle` documents.
 * @throws {SystemError} ELOOP for a link that others could exchange
 */
export function openParentDirectory(fs: NodeFsModule, directory: string): ParentDirectory {
  if (hasPathHandles(fs)) return createParentDirectory(fs, directory, openPathHandle(fs, directory, O_DIRECTORY))
  closeQuietly(fs, fs.openSync(directory, 'r'))
  return createParentDirectory(fs, directory, { link: directory, [Symbol.dispose]: () => {} })
}

/** Opens a directory with `openGuardedDirectory`, so that its names stay the same between two calls. */
export function openGuardedParentDirectory(fs: NodeFsModule, directory: string): ParentDirectory {
  return createParentDirectory(fs, directory, openGuardedDirectory(fs, directory))
}

function createParentDirectory(fs: NodeFsModule, path: string, handle: Omit<PathHandle, 'fd'>): ParentDirectory {
  const { link, [Symbol.dispose]: close } = handle
  return {
    path,
    at: (name) => `${link}/${name}`,
    sync: () => showDirectoryPathInErrors(path, () => syncDirectory(fs, link)),
    [Symbol.dispose]: close,
  }
}

/**
 * Opens a file for writing in place; no other function may. It follows no link and does not wait for a FIFO.
 * @throws {SystemError} EPERM if the file is not regular, has a second name, or belongs to a user other than root and
 * modekeep's own. The same holds for the owner of its directory
 */
export function openFileToWrite(fs: NodeFsModule, path: string, flags: number, mode: number): OpenedFile {
  using parent = openParentDirectory(fs, dirname(path))
  return openFileToWriteIn(fs, parent, basename(path), flags, mode)
}

/** Like `openFileToWrite`, in an open directory. */
export function openFileToWriteIn(
  fs: NodeFsModule,
  parent: ParentDirectory,
  name: string,
  flags: number,
  mode: number,
): OpenedFile {
  const path = `${parent.path}/${name}`
  const refuse = (reason: string) => {
    throw new SystemError('open', 'EPERM', path, reason)
  }
  if (!isOwnedByRootOrSelf(fs.statSync(parent.at('.')))) refuse('its directory belongs to another user than root')
  // O_TRUNC would empty a foreign file before its owner is checked.
  const openFlags = (flags & ~O_TRUNC) | O_NOFOLLOW | O_NONBLOCK
  const fd = showDirectoryPathInErrors(parent.path, () => fs.openSync(parent.at(name), openFlags, mode))
  try {
    const stat = fs.fstatSync(fd)
    if (!stat.isFile()) refuse('not a regular file')
    if (!isOwnedByRootOrSelf(stat)) refuse('it belongs to another user than root')
    // 0 links are accepted: another process has just removed the file.
    if (stat.nlink > 1) refuse('it has more than one name')
    if ((flags & O_TRUNC) !== 0) fs.ftruncateSync(fd)
  } catch (error) {
    closeQuietly(fs, fd)
    throw error
  }
  return { fd, [Symbol.dispose]: () => closeQuietly(fs, fd) }
}

/** Creates a file in a directory of any owner. @throws EEXIST if the name exists */
export function createFileInDirectory(
  fs: NodeFsModule,
  parent: ParentDirectory,
  name: string,
  mode: number,
): OpenedFile {
  // O_EXCL follows no link of this name.
  return showDirectoryPathInErrors(parent.path, () => openFile(fs, parent.at(name), 'wx', mode))
}

/** Calls rename(2) within an open directory. */
export function renameInDirectory(fs: NodeFsModule, parent: ParentDirectory, from: string, to: string): void {
  showDirectoryPathInErrors(parent.path, () => fs.renameSync(parent.at(from), parent.at(to)))
}

/** Removes names from a directory and ignores missing ones. */
export function removeNamesInDirectory(fs: NodeFsModule, directory: string, names: readonly string[]): void {
  using parent = tolerateErrno('ENOENT ENOTDIR', () => openParentDirectory(fs, directory))
  if (parent === undefined) return
  for (const name of names) removeInDirectory(fs, parent, name)
}

/** Calls a function with a name's path through its directory's handle. It must not follow a link in the name. */
export function callWithHandlePath<T>(fs: NodeFsModule, path: string, call: (at: string) => T): T {
  using parent = openParentDirectory(fs, dirname(path))
  return showDirectoryPathInErrors(parent.path, () => call(parent.at(basename(path))))
}

/** Makes one rename(2) between two open directories. */
export function renamePath(fs: NodeFsModule, from: string, to: string): void {
  using source = openParentDirectory(fs, dirname(from))
  using target = openParentDirectory(fs, dirname(to))
  const [fromPath, toPath] = [source.at(basename(from)), target.at(basename(to))]
  const toUserPath = (path: string) => (path === fromPath ? from : path === toPath ? to : path)
  reportErrorsWithUserPaths(toUserPath, () => fs.renameSync(fromPath, toPath))
}

/** Lists the names in a directory. @throws as `openParentDirectory` */
export function listDirectoryNames(fs: NodeFsModule, directory: string): string[] {
  using parent = openParentDirectory(fs, directory)
  return showDirectoryPathInErrors(directory, () => fs.readdirSync(parent.at('.')))
}

export function removeInDirectory(fs: NodeFsModule, parent: ParentDirectory, name: string): void {
  showDirectoryPathInErrors(parent.path, () => fs.rmSync(parent.at(name), { force: true }))
}

/** Names the temporary file of `replaceFile`. It remains if a process crashes before the rename. */
export const formatTemporaryName = (name: string): string => `${name}.new`

/** Durability of a replaced file. `full`: content and name; `content`: the name once its directory is synced; `none`: nothing. */
export type ReplacementDurability = 'full' | 'content' | 'none'

/** Writes a temporary file and renames it. */
export function replaceFile(
  fs: NodeFsModule,
  path: string,
  content: string | Uint8Array,
  mode: number,
  durability: ReplacementDurability = 'full',
): void {
  using parent = openParentDirectory(fs, dirname(path))
  const name = basename(path)
  const temporary = formatTemporaryName(name)
  try {
    writeNewFile(fs, parent, temporary, { content, mode, isSynced: durability !== 'none' })
    renameInDirectory(fs, parent, temporary, name)
  } catch (error) {
    // On a full disk the temporary file would prevent the removal of the directory.
    removeInDirectory(fs, parent, temporary)
    throw error
  }
  if (durability === 'full') parent.sync()
}

/** Only the owner may read and write the file. */
export const PRIVATE_FILE_MODE = 0o600

function writeNewFile(
  fs: NodeFsModule,
  parent: ParentDirectory,
  name: string,
  { content, mode, isSynced }: { content: string | Uint8Array; mode: number; isSynced: boolean },
): void {
  // A leftover of a crashed process is removed, never written to.
  const created = tolerateErrno('EEXIST', () => createFileInDirectory(fs, parent, name, mode))
  if (created === undefined) removeInDirectory(fs, parent, name)
  using file = created ?? createFileInDirectory(fs, parent, name, mode)
  fs.writeFileSync(file.fd, content)
  // The umask may have cleared bits of the mode.
  if (mode !== PRIVATE_FILE_MODE) fs.fchmodSync(file.fd, mode)
  if (isSynced) fs.fsyncSync(file.fd)
}

/**
 * Rejects foreign files at a path that a library opens itself after this check. Other users must therefore not be able
 * to exchange a directory of the path.
 * @throws {Refusal} if others can exchange one; {SystemError} as `openFileToWrite`; nothing if no file exists
 */
export function assertOwnFiles(fs: NodeFsModule, directory: string, names: readonly string[]): void {
  using parent = tolerateErrno('EPERM', () => createParentDirectory(fs, directory, openGuardedDirectory(fs, directory)))
  if (parent === undefined) {
    throw Refusal.of(
      'journal-exposed',
      `users other than root can replace files in ${directory}`,
      'chown root and chmod go-w the directories of its path',
    )
  }
  for (const name of names) {
    const stat = tolerateErrno('ENOENT', () => fs.lstatSync(parent.at(name)))
    if (stat === undefined || (stat.isFile() && isOwnedByRootOrSelf(stat) && stat.nlink <= 1)) continue
    throw new SystemError('open', 'EPERM', `${directory}/${name}`, 'not a regular file of root with one name')
  }
}

/**
 * Creates a directory and its missing parents, each through its parent's handle. Existing links are followed as
 * `openPathHandle` documents. A link that replaces a new directory is not followed.
 * @param modeAbove mode of the new parents
 * @throws {SystemError} EPERM for a directory of a user other than root and modekeep's own; ELOOP
 */
export function makeDirectories(fs: NodeFsModule, path: string, mode: number, modeAbove = mode): void {
  using directory = openOrMakeDirectory(fs, path, mode, modeAbove)
  assertOwnedDirectory(fs, directory)
}

function openOrMakeDirectory(fs: NodeFsModule, path: string, mode: number, modeAbove: number): ParentDirectory {
  const existing = tolerateErrno('ENOENT', () => openParentDirectory(fs, path))
  if (existing !== undefined) return existing
  using parent = openOrMakeDirectory(fs, dirname(path), modeAbove, modeAbove)
  const directory = makeDirectoryIn(fs, parent, basename(path), mode)
  try {
    assertOwnedDirectory(fs, directory)
    return directory
  } catch (error) {
    directory[Symbol.dispose]()
    throw error
  }
}

/** Calls mkdir(2) in an open directory. Another process may make the directory first. */
function makeDirectoryIn(fs: NodeFsModule, parent: ParentDirectory, name: string, mode: number): ParentDirectory {
  const path = `${parent.path}/${name}`
  showDirectoryPathInErrors(parent.path, () => tolerateErrno('EEXIST', () => fs.mkdirSync(parent.at(name), { mode })))
  if (!hasPathHandles(fs)) return openParentDirectory(fs, path)
  return createParentDirectory(fs, path, openNameHandle(fs, parent.at(name), O_PATH | O_DIRECTORY | O_NOFOLLOW, path))
}

function assertOwnedDirectory(fs: NodeFsModule, directory: ParentDirectory): void {
  if (isOwnedByRootOrSelf(fs.statSync(directory.at('.')))) return
  throw new SystemError('mkdir', 'EPERM', directory.path, 'it belongs to another user than root')
}
