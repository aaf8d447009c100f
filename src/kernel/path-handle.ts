import type { Stats } from 'node:fs'
import { join } from 'node:path'
import { getSystemErrorMessage } from 'node:util'
import { findErrnoName } from './errno-names.ts'
import { getErrno, SystemError } from './system-error.ts'

// An import as namespace would copy node:fs name by name.
export const nodeFs = process.getBuiltinModule('node:fs')

/** node:fs, or memfs. */
export type NodeFsModule = typeof nodeFs

const { O_DIRECTORY, O_NOFOLLOW } = nodeFs.constants
// include/uapi/asm-generic/fcntl.h; node:fs does not export it.
export const O_PATH = 0o10000000
const GROUP_WRITE_BIT = 0o020
const OTHERS_WRITE_BIT = 0o002
const STICKY_BIT = 0o1000
// include/uapi/linux/magic.h
const PROC_SUPER_MAGIC = 0x9fa0
/** The kernel's limit (include/linux/namei.h, MAXSYMLINKS). */
const MAX_FOLLOWED_LINKS = 40

/** A file or directory opened with O_PATH, which does not open its content. */
export interface PathHandle extends Disposable {
  readonly fd: number
  /** A path that leads to the opened file, even if its own path is exchanged. */
  readonly link: string
}

const pathHandleSupport = new WeakMap<NodeFsModule, boolean>()

/** Checks for /proc/self/fd. memfs has no such paths, so there plain paths are used. */
export function hasPathHandles(fs: NodeFsModule): boolean {
  const recorded = pathHandleSupport.get(fs)
  if (recorded !== undefined) return recorded
  const isSupported = fs.existsSync('/proc/self/fd')
  pathHandleSupport.set(fs, isSupported)
  return isSupported
}

/** Checks whether a file belongs to root or to the user that modekeep runs as. */
export function isOwnedByRootOrSelf({ uid }: Pick<Stats, 'uid'>): boolean {
  return uid === 0 || uid === process.geteuid?.()
}

/**
 * Opens a path with O_PATH, which does not touch devices, FIFOs or links. "Owner" means root or the user that modekeep
 * runs as. A symbolic link is followed only if it and each directory above it belong to the owner, and no other user
 * can write to these directories. In a directory with the sticky bit other users cannot exchange the owner's names. In
 * a directory that others can write, only a link to another name of the same directory is followed, as in a ConfigMap:
 * a user who could exchange that link could exchange a file as well.
 * @throws {SystemError} ELOOP for any other link
 */
export function openPathHandle(fs: NodeFsModule, path: string, flags = 0): PathHandle {
  return openLinkFreeHandle(fs, path, flags) ?? walkPath(fs, path, flags)
}

/**
 * Opens a directory if only root and modekeep's own user can exchange names in it or in the directories above it.
 * @throws {SystemError} EPERM for any other directory; ELOOP as `openPathHandle`
 */
export function openGuardedDirectory(fs: NodeFsModule, path: string): PathHandle {
  const level = walkPath(fs, path, O_DIRECTORY)
  const isWritten = (fs.fstatSync(level.fd).mode & (GROUP_WRITE_BIT | OTHERS_WRITE_BIT)) !== 0
  const unguarded = level.unguarded ?? (isWritten ? level.path : undefined)
  if (unguarded === undefined) return level
  level[Symbol.dispose]()
  throw new SystemError('open', 'EPERM', path, `users other than root can write to ${unguarded}`)
}

/** Opens a path in one step. @returns undefined if a link was followed, or may have been */
function openLinkFreeHandle(fs: NodeFsModule, path: string, flags: number): PathHandle | undefined {
  const handle = openNameHandle(fs, path, O_PATH | O_NOFOLLOW, path)
  try {
    const stat = fs.fstatSync(handle.fd)
    if (!stat.isSymbolicLink() && fs.readlinkSync(handle.link) === path) {
      assertDirectory(path, stat, flags)
      return handle
    }
  } catch (error) {
    handle[Symbol.dispose]()
    throw error
  }
  handle[Symbol.dispose]()
  return undefined
}

function assertDirectory(path: string, stat: Stats, flags: number): void {
  if ((flags & O_DIRECTORY) !== 0 && !stat.isDirectory()) throw new SystemError('open', 'ENOTDIR', path)
}

interface PathLevel extends PathHandle {
  path: string
  /** The first directory of the path in which other users can exchange names, or undefined. */
  unguarded: string | undefined
}

function walkPath(fs: NodeFsModule, path: string, flags: number): PathLevel {
  const start = path.startsWith('/') ? '/' : '.'
  const levels: PathLevel[] = []
  const closeFrom = (index: number) => {
    for (const level of levels.splice(index)) level[Symbol.dispose]()
  }
  try {
    levels.push(createPathLevel(fs, openNameHandle(fs, start, O_PATH | O_DIRECTORY, path), start))
    let linkCount = 0
    const pendingNames = path.split('/').reverse()
    for (let name = pendingNames.pop(); name !== undefined; name = pendingNames.pop()) {
      if (name === '' || name === '.') continue
      if (name === '..' && levels.length > 1) {
        closeFrom(levels.length - 1)
        continue
      }
      const level = levels.at(-1) as PathLevel
      const linkPath = `${level.link}/${name}`
      const handle = openNameHandle(fs, linkPath, O_PATH | O_NOFOLLOW, path)
      const stat = fs.fstatSync(handle.fd)
      if (!stat.isSymbolicLink()) {
        levels.push(createPathLevel(fs, handle, join(level.path, name), level))
        continue
      }
      handle[Symbol.dispose]()
      if (++linkCount > MAX_FOLLOWED_LINKS) throw new SystemError('open', 'ELOOP', path)
      // Magic links such as /proc/PID/root do not lead to the path in their text.
      if (fs.statfsSync(level.link).type === PROC_SUPER_MAGIC) {
        const isRoot = name === 'root'
        const target = createPathLevel(fs, openNameHandle(fs, linkPath, O_PATH, path), join(level.path, name), level)
        if (isRoot) closeFrom(0)
        levels.push(target)
        continue
      }
      const target = fs.readlinkSync(linkPath)
      if (!isOwnedByRootOrSelf(stat) || !(level.unguarded === undefined || isInsideLinkDirectory(target))) {
        const reason = 'users other than root can exchange a symbolic link in the path'
        throw new SystemError('open', 'ELOOP', path, reason)
      }
      if (target.startsWith('/')) closeFrom(1)
      pendingNames.push(...target.split('/').reverse())
    }
    assertDirectory(path, fs.fstatSync((levels.at(-1) as PathLevel).fd), flags)
    return levels.pop() as PathLevel
  } finally {
    closeFrom(0)
  }
}

function createPathLevel(fs: NodeFsModule, handle: PathHandle, path: string, above?: PathLevel): PathLevel {
  const stat = fs.fstatSync(handle.fd)
  const isWritten = (stat.mode & OTHERS_WRITE_BIT) !== 0 || ((stat.mode & GROUP_WRITE_BIT) !== 0 && stat.gid !== 0)
  const isGuarded = isOwnedByRootOrSelf(stat) && (!isWritten || (stat.mode & STICKY_BIT) !== 0)
  return { ...handle, path, unguarded: above?.unguarded ?? (isGuarded ? undefined : path) }
}

/** Checks whether a link's target is in or below the link's own directory. */
function isInsideLinkDirectory(text: string): boolean {
  return !text.startsWith('/') && !text.split('/').includes('..')
}

/** Opens one name without following a link. @param path the path for messages */
export function openNameHandle(fs: NodeFsModule, openPath: string, flags: number, path: string): PathHandle {
  const fd = reportErrorsWithUserPaths(
    () => path,
    () => fs.openSync(openPath, flags),
  )
  return { fd, link: `/proc/self/fd/${fd}`, [Symbol.dispose]: () => closeQuietly(fs, fd) }
}

/** Linux closes the descriptor even if close(2) fails. */
export function closeQuietly(fs: NodeFsModule, fd: number): void {
  try {
    fs.closeSync(fd)
  } catch {
    // The file has no unsynced writes.
  }
}

const DESCRIPTOR_PATH_PREFIX = /^\/proc\/self\/fd\/\d+/

/** Calls a function that uses the path of a directory's descriptor. Errors show the directory's own path. */
export function showDirectoryPathInErrors<T>(directory: string, call: () => T): T {
  return reportErrorsWithUserPaths((path) => path.replace(DESCRIPTOR_PATH_PREFIX, () => directory), call)
}

/** Calls a function that uses paths of descriptors. Errors show the user's paths. */
export function reportErrorsWithUserPaths<T>(toUserPath: (path: string) => string, call: () => T): T {
  try {
    return call()
  } catch (error) {
    throw showUserPaths(error, toUserPath)
  }
}

/** Writes the message of an error of node:fs or node:net again, with the user's paths. Returns the error. */
export function showUserPaths(error: unknown, toUserPath: (path: string) => string): unknown {
  if (getErrno(error) === undefined) return error
  const failure = error as NodeJS.ErrnoException & { dest?: string; address?: string }
  const { errno = 0, syscall, dest, path = failure.address } = failure
  const paths = [path, dest].filter((used) => used !== undefined)
  const shown = paths.map(toUserPath)
  if (shown.every((user, at) => user === paths[at])) return error
  const code = findErrnoName(failure)
  const words = code === failure.code ? `${code}: ${getSystemErrorMessage(-Math.abs(errno))}` : code
  failure.message = `${words}, ${syscall} '${shown.join("' -> '")}'`
  return error
}
