import { Refusal } from '../errors/refusal.ts'
import { DIRECTORY, FILE_TYPE, type Handle, type Inodes, refuseOnErrno, SYMLINK } from '../host/host.ts'
import { createSubPathMessages, type FollowedLink } from './sub-path-messages.ts'

/** The kernel's limit (MAXSYMLINKS). */
const MAX_LINKS = 40

const STICKY = 0o1000
const WRITABLE_BY_ALL = 0o0002

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
export function openByComponents(inodes: Inodes, root: Handle, subPath: string): Handle {
  const messages = createSubPathMessages(subPath)
  const opened: { handle: Handle; name: string }[] = []
  const remaining = splitPath(Buffer.from(subPath), undefined).reverse()
  let links = 0
  try {
    for (let part = remaining.pop(); part; part = remaining.pop()) {
      const { link } = part
      const name = part.name.toString()
      if (isCurrentDirectory(name)) continue
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
      const type = mode & FILE_TYPE
      if (type === SYMLINK) {
        const path = pathTo()
        if (!isTrusted(inodes, parent, uid)) throw new Refusal(messages.notTrusted(path, uid))
        const target = refuseOnErrno(
          () => Buffer.from(inodes.readLink(handle)),
          () => ({ ELOOP: messages.notFollowed(path) }),
        )
        const next = { path, target: target.toString() }
        if (++links > MAX_LINKS) throw new Refusal(messages.loops(next, MAX_LINKS))
        opened.pop()
        inodes.close(handle)
        remaining.push(...follow(target, next).reverse())
      } else if (type !== DIRECTORY && remaining.length > 0)
        throw new Refusal(messages.notDirectory(pathTo(), mode, link))
    }
    return opened.pop()?.handle ?? inodes.duplicate(root)
  } finally {
    for (const { handle } of opened) inodes.close(handle)
  }

  function follow(target: Buffer, link: FollowedLink): PathComponent[] {
    const parts = splitPath(target, link)
    if (link.target[0] !== '/') return parts
    for (const { name } of splitPath(Buffer.from(inodes.pathOf(root)), undefined)) {
      if (isCurrentDirectory(name.toString())) continue
      while (parts[0] && isCurrentDirectory(parts[0].name.toString())) parts.shift()
      if (!parts.shift()?.name.equals(name)) throw new Refusal(messages.leaves(link))
    }
    for (const { handle } of opened.splice(0)) inodes.close(handle)
    return parts
  }
}

/** Applies the rule of the sysctl protected_symlinks even if it is off, so no link is followed that the kernel may refuse. */
function isTrusted(inodes: Inodes, parent: Handle, uid: number): boolean {
  if (uid === 0) return true
  const directory = inodes.stat(parent)
  const isOpenToAll = (directory.mode & STICKY) !== 0 && (directory.mode & WRITABLE_BY_ALL) !== 0
  return !isOpenToAll || directory.uid === uid
}

function splitPath(path: Buffer, link: FollowedLink | undefined): PathComponent[] {
  // latin1 maps each byte to one character, because names need not be UTF-8.
  const names = path.toString('latin1').split('/')
  return names.map((name) => ({ name: Buffer.from(name, 'latin1'), link }))
}

/** An empty name, between two slashes or after the last one, requires a directory before it, as "." does. */
function isCurrentDirectory(name: string): boolean {
  return name === '' || name === '.'
}
