import { execFileSync } from 'node:child_process'
import { requireProgram } from '../helpers/needs.ts'

const TAGS = { u: 0x01, user: 0x02, g: 0x04, group: 0x08, m: 0x10, o: 0x20 } as const
const NO_ID = 0xffffffff
const VERSION = 2

/** One entry of an ACL, as `setfacl` writes it: "u::rw-", "u:1000:r--", "g::r--", "g:5:rwx", "m::r--", "o::---". */
export interface AclEntry {
  tag: number
  perm: number
  id: number
}

/** The kernel's form of an ACL (system.posix_acl_access and _default), in hexadecimal as setfattr(1) takes it. */
export function acl(text: string): string {
  const entries = text.split(',').map((entry) => {
    const [kind = '', id = '', perm = ''] = entry.split(':')
    const tag = kind === 'u' && id ? TAGS.user : kind === 'g' && id ? TAGS.group : TAGS[kind as keyof typeof TAGS]
    const bits = (perm.includes('r') ? 4 : 0) + (perm.includes('w') ? 2 : 0) + (perm.includes('x') ? 1 : 0)
    return { tag, perm: bits, id: id ? Number(id) : NO_ID }
  })
  // The kernel wants them sorted.
  entries.sort((a, b) => a.tag - b.tag || a.id - b.id)
  const bytes = Buffer.alloc(4 + 8 * entries.length)
  bytes.writeUInt32LE(VERSION, 0)
  entries.forEach(({ tag, perm, id }, index) => {
    bytes.writeUInt16LE(tag, 4 + 8 * index)
    bytes.writeUInt16LE(perm, 6 + 8 * index)
    bytes.writeUInt32LE(id, 8 + 8 * index)
  })
  return `0x${bytes.toString('hex')}`
}

/** The access ACL of a file, undefined where it has none beyond its mode. */
export function accessAcl(path: string): AclEntry[] | undefined {
  const hex = /system\.posix_acl_access=0x([0-9a-f]+)/.exec(attributes(path))?.[1]
  if (hex === undefined) return undefined
  const bytes = Buffer.from(hex, 'hex')
  return Array.from({ length: (bytes.length - 4) / 8 }, (_, index) => ({
    tag: bytes.readUInt16LE(4 + 8 * index),
    perm: bytes.readUInt16LE(6 + 8 * index),
    id: bytes.readUInt32LE(8 + 8 * index),
  }))
}

/** What an entry really gives: the mask bounds all but the owner and others. */
export function effective(entries: readonly AclEntry[], tag: number, id = NO_ID): number {
  const mask = entries.find((entry) => entry.tag === TAGS.m)?.perm ?? 7
  const perm = entries.find((entry) => entry.tag === tag && entry.id === id)?.perm
  if (perm === undefined) throw new Error(`no entry ${tag}:${id}`)
  return tag === TAGS.u || tag === TAGS.o ? perm : perm & mask
}

export const { user: NAMED_USER, g: OWNING_GROUP, group: NAMED_GROUP } = TAGS

/** Every extended attribute below a path, ACLs and capabilities included, as text. */
export function attributes(path: string): string {
  const args = ['-R', '-h', '-P', '-d', '-m', '-', '-e', 'hex', '--absolute-names', path]
  return execFileSync(requireProgram('getfattr'), args, { maxBuffer: 1 << 30 }).toString()
}

/** Sets attributes of many files at once. */
export function setAttributes(root: string, all: Readonly<Record<string, Readonly<Record<string, string>>>>): void {
  const blocks = Object.entries(all).map(([path, values]) => {
    const lines = Object.entries(values).map(([name, value]) => `${name}=${value}`)
    return [`# file: ${root}/${path}`, ...lines, ''].join('\n')
  })
  execFileSync(requireProgram('setfattr'), ['-h', '--restore=-'], { input: blocks.join('\n'), stdio: 'pipe' })
}
