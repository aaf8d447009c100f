import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { linuxHost } from '../../src/kernel/linux/index.ts'
import { ACCESS_ACL_ATTRIBUTE, CAPABILITY_ATTRIBUTE as CAPABILITY_NAME } from '../../src/ownership/inode/attributes.ts'
import { CAPABILITY } from '../crash/volume.ts'
import type { Entry, Inode, Tree } from './trees.ts'

export const below = (directory: Buffer, name: Uint8Array | string) =>
  Buffer.concat([directory, Buffer.from('/'), Buffer.from(name)])

/** Where every inode of a tree lies, in its order, its root first. */
export function pathsOf(root: Buffer, tree: Tree): Buffer[] {
  const paths = [root]
  for (const { parent, name } of tree) paths.push(below(paths[parent] ?? root, name))
  return paths
}

/** Makes trees in a volume. @param outside a directory of the same file system, for names that lead out */
export function buildTrees(volume: Buffer, outside: Buffer, trees: readonly Tree[], special: string): void {
  const specials: Buffer[] = []
  for (const [number, tree] of trees.entries()) {
    const paths = pathsOf(below(volume, String(number)), tree)
    fs.mkdirSync(paths[0] ?? volume)
    for (const [index, inode] of tree.entries()) {
      const path = paths[index + 1] ?? volume
      if (inode.kind === 'dir') fs.mkdirSync(path)
      else if (inode.kind === 'link') fs.symlinkSync(inode.target, path)
      else if (inode.kind === 'file') fs.writeFileSync(path, `${number}.${index}`)
      else specials.push(Buffer.from(LETTERS[inode.kind]), path, Buffer.of(0))
    }
  }
  execFileSync(special, { input: Buffer.concat(specials) })
  for (const [number, tree] of trees.entries())
    dress(pathsOf(below(volume, String(number)), tree), tree, outside, number)
}

const LETTERS = { fifo: 'p', socket: 's', device: 'c' }

/** Names, owners, modes, ACLs and capabilities, in an order in which none takes another away. */
function dress(paths: readonly Buffer[], tree: Tree, outside: Buffer, number: number): void {
  for (const [index, inode] of tree.entries()) {
    const path = paths[index + 1] ?? outside
    for (const [n, link] of linksOf(inode).entries()) {
      const parent = link === 'outside' ? outside : (paths[link] ?? outside)
      fs.linkSync(path, below(parent, `link ${number}.${index}.${n}`))
    }
    fs.lchownSync(path, inode.uid, inode.gid)
    if (inode.kind === 'link') continue
    fs.chmodSync(path, inode.mode)
    if (hasAcl(inode)) setAttribute(path, ACCESS_ACL_ATTRIBUTE, aclOf(inode.mode, inode.acl ?? []))
    if (hasCapability(inode)) setAttribute(path, CAPABILITY_NAME, Buffer.from(CAPABILITY, 'hex'))
  }
}

const linksOf = (inode: Inode) => (inode.kind === 'file' ? inode.links : [])

export const isLinkedOutside = (inode: Inode) => linksOf(inode).includes('outside')
export const hasAcl = (inode: Inode) => inode.acl !== undefined && ['file', 'dir'].includes(inode.kind)
export const hasCapability = (inode: Inode) => inode.hasCapability && inode.kind === 'file'

/** Through a handle in /proc, as names are bytes. */
function setAttribute(path: Buffer, name: string, value: Uint8Array): void {
  withHandle(path, (handle) => linuxHost.inodes.setAttribute(handle, name, value))
}

export function getAttribute(path: Buffer, name: string): string | undefined {
  return withHandle(path, (handle) => {
    const value = linuxHost.inodes.getAttribute(handle, name)
    return value && Buffer.from(value).toString('hex')
  })
}

type Handle = ReturnType<typeof linuxHost.inodes.openTrusted>

function withHandle<T>(path: Buffer, use: (handle: Handle) => T): T {
  const { inodes } = linuxHost
  const slash = path.lastIndexOf(0x2f)
  const parent = fs.openSync(path.subarray(0, slash), fs.constants.O_DIRECTORY)
  try {
    const handle = inodes.openEntry(parent as Handle, path.subarray(slash + 1))
    try {
      return use(handle)
    } finally {
      inodes.close(handle)
    }
  } finally {
    fs.closeSync(parent)
  }
}

const TAGS = { owner: 0x01, user: 0x02, owning: 0x04, group: 0x08, mask: 0x10, other: 0x20 }
const NO_ID = 0xffffffff

/** The kernel's form of an ACL: the mode's bits, named entries, and a mask that is the mode's group bits. */
function aclOf(mode: number, named: readonly Entry[]): Buffer {
  const entries = [
    { tag: TAGS.owner, bits: (mode >> 6) & 7, id: NO_ID },
    ...named.map(({ tag, id, bits }) => ({ tag: TAGS[tag], bits, id })),
    { tag: TAGS.owning, bits: (mode >> 3) & 5, id: NO_ID },
    { tag: TAGS.mask, bits: (mode >> 3) & 7, id: NO_ID },
    { tag: TAGS.other, bits: mode & 7, id: NO_ID },
  ].sort((a, b) => a.tag - b.tag || a.id - b.id)
  const bytes = Buffer.alloc(4 + 8 * entries.length)
  bytes.writeUInt32LE(2, 0)
  for (const [index, { tag, bits, id }] of entries.entries()) {
    bytes.writeUInt16LE(tag, 4 + 8 * index)
    bytes.writeUInt16LE(bits, 6 + 8 * index)
    bytes.writeUInt32LE(id, 8 + 8 * index)
  }
  return bytes
}

/** What the named entries of an ACL really give: the mask bounds them. */
export function namedRights(hex: string): Record<string, number> {
  const bytes = Buffer.from(hex, 'hex')
  const entries = Array.from({ length: (bytes.length - 4) / 8 }, (_, index) => ({
    tag: bytes.readUInt16LE(4 + 8 * index),
    bits: bytes.readUInt16LE(6 + 8 * index),
    id: bytes.readUInt32LE(8 + 8 * index),
  }))
  const mask = entries.find(({ tag }) => tag === TAGS.mask)?.bits ?? 7
  const named = entries.filter(({ tag }) => tag === TAGS.user || tag === TAGS.group)
  return Object.fromEntries(named.map(({ tag, id, bits }) => [`${tag}:${id}`, bits & mask]))
}
