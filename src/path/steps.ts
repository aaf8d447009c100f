import { DIRECTORY, explained, FILE_TYPE, type Handle, type Inodes, SYMLINK } from '../host/host.ts'
import { Refusal } from '../refusal/refusal.ts'
import { type Link, sentences } from './refusals.ts'

/** The kernel's own bound (MAXSYMLINKS). */
const MOST_LINKS = 40

const STICKY = 0o1000
const WRITABLE_BY_ALL = 0o0002

/** A component still ahead, and the link whose target it is of. */
interface Part {
  name: Buffer
  link: Link | undefined
}

/**
 * Resolves a path inside `root` as openat2(2) with RESOLVE_BENEATH does, one component after the other. Each is opened
 * in the directory held before it, itself and never what a link leads to, so a rename at any moment can change what is
 * found, but only for something else inside. `..` goes back to the directory held before: it is never looked up.
 * Unlike the kernel's, an absolute link is followed if its text begins with the root's own path.
 * @throws {Refusal}
 */
export function openByParts(inodes: Inodes, root: Handle, subPath: string): Handle {
  const say = sentences(subPath)
  const held: { handle: Handle; name: string }[] = []
  const ahead = partsOf(Buffer.from(subPath), undefined).reverse()
  let links = 0
  try {
    for (let part = ahead.pop(); part; part = ahead.pop()) {
      const { link } = part
      const name = part.name.toString()
      if (isHere(name)) continue
      if (name === '..') {
        const left = held.pop()
        if (!left) throw new Refusal(say.leaves(link))
        inodes.close(left.handle)
        continue
      }
      const parent = held.at(-1)?.handle ?? root
      // Made for a message or a link alone: for each part of a long path it would take quadratic time.
      const depth = held.length
      const pathTo = () => [...held.slice(0, depth).map((one) => one.name), name].join('/')
      const missing = () => ({ 'ENOENT ENAMETOOLONG': say.missing(pathTo(), link) })
      const handle = explained(() => inodes.openEntry(parent, part.name), missing)
      held.push({ handle, name })
      const { mode, uid } = inodes.stat(handle)
      const type = mode & FILE_TYPE
      if (type === SYMLINK) {
        const path = pathTo()
        if (!isTrusted(inodes, parent, uid)) throw new Refusal(say.notTrusted(path, uid))
        const target = explained(
          () => Buffer.from(inodes.readLink(handle)),
          () => ({ ELOOP: say.notFollowed(path) }),
        )
        const next = { path, target: target.toString() }
        if (++links > MOST_LINKS) throw new Refusal(say.loops(next, MOST_LINKS))
        held.pop()
        inodes.close(handle)
        ahead.push(...follow(target, next).reverse())
      } else if (type !== DIRECTORY && ahead.length > 0) throw new Refusal(say.notDirectory(pathTo(), mode, link))
    }
    return held.pop()?.handle ?? inodes.duplicate(root)
  } finally {
    for (const { handle } of held) inodes.close(handle)
  }

  function follow(target: Buffer, link: Link): Part[] {
    const parts = partsOf(target, link)
    if (link.target[0] !== '/') return parts
    for (const { name } of partsOf(Buffer.from(inodes.pathOf(root)), undefined)) {
      if (isHere(name.toString())) continue
      while (parts[0] && isHere(parts[0].name.toString())) parts.shift()
      if (!parts.shift()?.name.equals(name)) throw new Refusal(say.leaves(link))
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
  // A character for each byte: names need not be UTF-8.
  const names = path.toString('latin1').split('/')
  return names.map((name) => ({ name: Buffer.from(name, 'latin1'), link }))
}

/** Also the nothing between two slashes and after the last: like a dot, it wants a directory before it. */
function isHere(name: string): boolean {
  return name === '' || name === '.'
}
