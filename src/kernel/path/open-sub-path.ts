import { createFault, createOptionFault, type Fault, OPTION_TERM_PLACEHOLDER } from '../../errors/fault.ts'
import { quoteValue, Refusal } from '../../errors/refusal.ts'
import {
  BLOCK_DEVICE_TYPE,
  CHARACTER_DEVICE_TYPE,
  DIRECTORY_TYPE,
  FIFO_TYPE,
  FILE_TYPE_MASK,
  getErrno,
  type Handle,
  type Inodes,
  REGULAR_FILE_TYPE,
  refuseOnErrno,
  SOCKET_TYPE,
  SYMLINK_TYPE,
  useHandleOrClose,
} from '../host.ts'
import { checkPathSize } from './input-sizes.ts'

const MOUNTABLE_FILE_TYPES: ReadonlySet<number> = new Set([DIRECTORY_TYPE, REGULAR_FILE_TYPE, SOCKET_TYPE, FIFO_TYPE])

/** Checks the text of a subPath, before the source is opened. @returns the faults */
export function checkSubPath(subPath: string): Fault[] {
  if (subPath === '')
    return [createOptionFault('sub-path', 'subPath', 'is empty', 'name a part of the source, or leave subPath out')]
  const tooLong = checkPathSize(`${OPTION_TERM_PLACEHOLDER} "subPath"`, subPath)
  if (tooLong.length > 0) return tooLong
  const parts = subPath.split('/')
  if (subPath.includes('\0') || parts.some((part) => part === '' || part === '.' || part === '..')) {
    return [
      createOptionFault(
        'sub-path',
        'subPath',
        `is ${quoteValue(subPath)}`,
        `write a path inside the source, without a leading slash, "..", ".", "//" or a trailing slash`,
      ),
    ]
  }
  return []
}

/**
 * Opens a subPath inside the source, to be mounted by the handle. It is opened with O_PATH: no data is read, and a FIFO does
 * not block. Links are followed and mounts are crossed as long as they stay inside, even during concurrent renames. A
 * directory that is moved out of the source after it was entered still counts as inside.
 * @returns a directory, a file, a socket or a FIFO
 * @throws {Refusal} for a fault that the pod's author can correct
 * @throws {SystemError} for any other failure
 */
export function openSubPath(inodes: Inodes, root: Handle, subPath: string): Handle {
  const faults = checkSubPath(subPath)
  if (faults.length > 0) throw new Refusal(faults)
  return useHandleOrClose(
    inodes,
    openWithOpenat2(inodes, root, subPath) ?? openSubPathByComponents(inodes, root, subPath),
    (handle) => {
      const { mode } = inodes.stat(handle)
      if (!MOUNTABLE_FILE_TYPES.has(mode & FILE_TYPE_MASK))
        throw new Refusal(createSubPathMessages(subPath).wrongKind(mode))
      return handle
    },
  )
}

/** Returns undefined if openat2(2) fails for any reason. `openSubPathByComponents` then follows no link that the kernel refuses. */
function openWithOpenat2(inodes: Inodes, root: Handle, subPath: string): Handle | undefined {
  try {
    return inodes.openBeneath(root, subPath)
  } catch (error) {
    if (getErrno(error) === undefined) throw error
    return undefined
  }
}

/** The kernel's limit (MAXSYMLINKS). */
const MAX_FOLLOWED_LINKS = 40

const STICKY_BIT = 0o1000
const OTHERS_WRITE_BIT = 0o0002

/** A component that remains to be opened, and the link whose target contains it. */
interface PathComponent {
  name: Buffer
  link: FollowedLink | undefined
}

/**
 * Resolves a path inside `root` as openat2(2) with RESOLVE_BENEATH does, one component after the other. Each component is
 * opened in the directory opened before it, and a link is never followed by the open. A concurrent rename can therefore
 * change the result only to another entry inside `root`. `..` is never looked up: it returns to the directory opened before.
 * Unlike the kernel, it follows an absolute link whose text begins with the path of `root`.
 * @throws {Refusal}
 */
export function openSubPathByComponents(inodes: Inodes, root: Handle, subPath: string): Handle {
  const messages = createSubPathMessages(subPath)
  const opened: { handle: Handle; name: string }[] = []
  const remaining = splitPathComponents(Buffer.from(subPath), undefined).reverse()
  let links = 0
  try {
    for (let part = remaining.pop(); part; part = remaining.pop()) {
      const { link } = part
      const name = part.name.toString()
      if (isCurrentDirectoryName(name)) continue
      if (name === '..') {
        const closed = opened.pop()
        if (!closed) throw new Refusal(messages.leaves(link))
        inodes.close(closed.handle)
        continue
      }
      const parent = opened.at(-1)?.handle ?? root
      // Called only for a message or a link: a call for each component of a long path would take quadratic time.
      const depth = opened.length
      const pathTo = () => [...opened.slice(0, depth).map((one) => one.name), name].join('/')
      const missing = () => ({ 'ENOENT ENAMETOOLONG': messages.missing(pathTo(), link) })
      const handle = refuseOnErrno(() => inodes.openEntry(parent, part.name), missing)
      opened.push({ handle, name })
      const { mode, uid } = inodes.stat(handle)
      const type = mode & FILE_TYPE_MASK
      if (type === SYMLINK_TYPE) {
        const path = pathTo()
        if (!isTrustedLink(inodes, parent, uid)) throw new Refusal(messages.notTrusted(path, uid))
        const target = refuseOnErrno(
          () => Buffer.from(inodes.readLink(handle)),
          () => ({ ELOOP: messages.notFollowed(path) }),
        )
        const next = { path, target: target.toString() }
        if (++links > MAX_FOLLOWED_LINKS) throw new Refusal(messages.loops(next, MAX_FOLLOWED_LINKS))
        opened.pop()
        inodes.close(handle)
        remaining.push(...follow(target, next).reverse())
      } else if (type !== DIRECTORY_TYPE && remaining.length > 0)
        throw new Refusal(messages.notDirectory(pathTo(), mode, link))
    }
    return opened.pop()?.handle ?? inodes.duplicate(root)
  } finally {
    for (const { handle } of opened) inodes.close(handle)
  }

  function follow(target: Buffer, link: FollowedLink): PathComponent[] {
    const parts = splitPathComponents(target, link)
    if (link.target[0] !== '/') return parts
    for (const { name } of splitPathComponents(Buffer.from(inodes.pathOf(root)), undefined)) {
      if (isCurrentDirectoryName(name.toString())) continue
      while (parts[0] && isCurrentDirectoryName(parts[0].name.toString())) parts.shift()
      if (!parts.shift()?.name.equals(name)) throw new Refusal(messages.leaves(link))
    }
    for (const { handle } of opened.splice(0)) inodes.close(handle)
    return parts
  }
}

/** Applies the rule of the sysctl protected_symlinks even if it is off, so no link is followed that the kernel may refuse. */
function isTrustedLink(inodes: Inodes, parent: Handle, uid: number): boolean {
  if (uid === 0) return true
  const directory = inodes.stat(parent)
  const isOpenToAll = (directory.mode & STICKY_BIT) !== 0 && (directory.mode & OTHERS_WRITE_BIT) !== 0
  return !isOpenToAll || directory.uid === uid
}

function splitPathComponents(path: Buffer, link: FollowedLink | undefined): PathComponent[] {
  // latin1 maps each byte to one character, because names need not be UTF-8.
  const names = path.toString('latin1').split('/')
  return names.map((name) => ({ name: Buffer.from(name, 'latin1'), link }))
}

/** An empty name, between two slashes or after the last one, requires a directory before it, as "." does. */
function isCurrentDirectoryName(name: string): boolean {
  return name === '' || name === '.'
}

/** A symbolic link in a subPath: its path in the source, and its target as text for people. */
export interface FollowedLink {
  path: string
  target: string
}

const FILE_TYPE_NAMES: Readonly<Record<number, string>> = {
  [DIRECTORY_TYPE]: 'a directory',
  [REGULAR_FILE_TYPE]: 'a file',
  [SYMLINK_TYPE]: 'a link',
  [FIFO_TYPE]: 'a FIFO',
  [SOCKET_TYPE]: 'a socket',
  [BLOCK_DEVICE_TYPE]: 'a block device',
  [CHARACTER_DEVICE_TYPE]: 'a character device',
}

const formatFileType = (mode: number) => FILE_TYPE_NAMES[mode & FILE_TYPE_MASK] ?? 'of an unknown kind'
const formatFollowedLink = ({ path, target }: FollowedLink) => `${quoteValue(path)} -> ${quoteValue(target)}`
const formatLeadingLink = (link: FollowedLink | undefined) =>
  link ? `, where the link ${formatFollowedLink(link)} leads` : ''

/** Creates the messages about a subPath that cannot be mounted. Their paths are relative to the source. */
function createSubPathMessages(subPath: string) {
  const subject = `subPath ${quoteValue(subPath)}`
  return {
    leaves: (link: FollowedLink | undefined) =>
      createFault(
        'sub-path-outside',
        `${subject} leads out of the source${link ? ` through the link ${formatFollowedLink(link)}` : ''}`,
        'name something whose links stay inside the source, or mount what lies outside as a source of its own',
      ),
    loops: (link: FollowedLink, most: number) =>
      createFault(
        'sub-path-outside',
        `${subject} goes through more than ${most} links, in a circle it seems, the last being ${formatFollowedLink(link)}`,
        'correct the links, or name what they should lead to',
      ),
    missing: (path: string, link: FollowedLink | undefined) =>
      createFault(
        'sub-path',
        `${subject} is not in the source: ${quoteValue(path)} does not exist${formatLeadingLink(link)}; create it there, or correct the name`,
      ),
    notDirectory: (path: string, mode: number, link: FollowedLink | undefined) =>
      createFault(
        'sub-path',
        `${subject} is not in the source: ${quoteValue(path)} is ${formatFileType(mode)}, not a directory${formatLeadingLink(link)}; correct the name`,
      ),
    notFollowed: (path: string) =>
      createFault(
        'sub-path-outside',
        `${subject} meets the link ${quoteValue(path)} where links are not followed (a mount with nosymfollow, or /proc)`,
        'name the target of the link',
      ),
    notTrusted: (path: string, uid: number) =>
      createFault(
        'sub-path-outside',
        `${subject} meets the link ${quoteValue(path)}, which user ${uid} has made in a directory open to all users`,
        'name the target of the link, or let the owner of the directory make the link',
      ),
    wrongKind: (mode: number) =>
      createFault('sub-path', `${subject} is ${formatFileType(mode)}`, 'name a directory, a file, a socket or a FIFO'),
  }
}
