import { DIRECTORY, errorCode, FILE_TYPE, type Handle, type Inodes, SYMLINK } from '../host/host.ts'
import { type Link, refusals } from './refusals.ts'

/** The kernel's own bound (MAXSYMLINKS). */
const MOST_LINKS = 40

const SLASH = 0x2f
const STICKY = 0o1000
const WRITABLE_BY_ALL = 0o0002

/** A component still ahead, and the link whose target it is of. */
interface Part {
  name: Buffer
  link: Link | undefined
}

interface Held {
  handle: Handle
  name: string
}

/**
 * Resolves a path inside `root` as openat2(2) with RESOLVE_BENEATH does, one component after the other. Each is opened
 * in the directory held before it, itself and never what a link leads to, so a rename at any moment can change what is
 * found, but only for something else inside. `..` goes back to the directory held before: it is never looked up.
 * Unlike the kernel's, an absolute link is followed if its text begins with the root's own path.
 * @throws {Refusal}
 */
export function openByParts(inodes: Inodes, root: Handle, subPath: string): Handle {
  const refuse = refusals(subPath)
  const held: Held[] = []
  const ahead = partsOf(Buffer.from(subPath), undefined).reverse()
  const pathTo = (name: string) => [...held.map((one) => one.name), name].join('/')
  let links = 0
  try {
    for (let part = ahead.pop(); part; part = ahead.pop()) {
      if (isHere(part.name)) continue
      if (isParent(part.name)) {
        const left = held.pop()
        if (!left) throw refuse.leaves(part.link)
        inodes.close(left.handle)
        continue
      }
      const parent = held.at(-1)?.handle ?? root
      const path = pathTo(part.name.toString())
      const handle = openPart(parent, part, path)
      held.push({ handle, name: part.name.toString() })
      const { mode, uid } = inodes.stat(handle)
      const type = mode & FILE_TYPE
      if (type === SYMLINK) {
        if (!isTrusted(inodes, parent, uid)) throw refuse.notTrusted(path, uid)
        const target = readLink(handle, path)
        const link = { path, target: target.toString() }
        if (++links > MOST_LINKS) throw refuse.loops(link, MOST_LINKS)
        held.pop()
        inodes.close(handle)
        ahead.push(...follow(target, link).reverse())
      } else if (type !== DIRECTORY && ahead.length > 0) throw refuse.notDirectory(path, mode, part.link)
    }
    return held.pop()?.handle ?? inodes.duplicate(root)
  } finally {
    for (const { handle } of held) inodes.close(handle)
  }

  function openPart(parent: Handle, { name, link }: Part, path: string): Handle {
    try {
      return inodes.openEntry(parent, name)
    } catch (error) {
      const code = errorCode(error)
      if (code === 'ENOENT' || code === 'ENAMETOOLONG') throw refuse.missing(path, link)
      throw error
    }
  }

  function readLink(handle: Handle, path: string): Buffer {
    try {
      return Buffer.from(inodes.readLink(handle))
    } catch (error) {
      if (errorCode(error) === 'ELOOP') throw refuse.notFollowed(path)
      throw error
    }
  }

  function follow(target: Buffer, link: Link): Part[] {
    const parts = partsOf(target, link)
    if (target[0] !== SLASH) return parts
    for (const { name } of partsOf(Buffer.from(inodes.pathOf(root)), undefined)) {
      if (isHere(name)) continue
      while (parts[0] && isHere(parts[0].name)) parts.shift()
      if (!parts.shift()?.name.equals(name)) throw refuse.leaves(link)
    }
    for (const { handle } of held.splice(0)) inodes.close(handle)
    return parts
  }
}

/** The rule of the sysctl protected_symlinks, whatever its value: what the kernel refuses is not followed by hand. */
function isTrusted(inodes: Inodes, parent: Handle, uid: number): boolean {
  if (uid === 0) return true
  const directory = inodes.stat(parent)
  const isOpenToAll = (directory.mode & STICKY) !== 0 && (directory.mode & WRITABLE_BY_ALL) !== 0
  return !isOpenToAll || directory.uid === uid
}

function partsOf(path: Buffer, link: Link | undefined): Part[] {
  const parts: Part[] = []
  for (let start = 0; start <= path.length; ) {
    const slash = path.indexOf(SLASH, start)
    const end = slash < 0 ? path.length : slash
    parts.push({ name: path.subarray(start, end), link })
    start = end + 1
  }
  return parts
}

/** Also the nothing between two slashes and after the last: like a dot, it wants a directory before it. */
function isHere(name: Buffer): boolean {
  return name.length === 0 || name.equals(DOT)
}

function isParent(name: Buffer): boolean {
  return name.equals(DOT_DOT)
}

const DOT = Buffer.from('.')
const DOT_DOT = Buffer.from('..')
