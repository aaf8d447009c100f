import type * as NodeFs from 'node:fs'
import { dirname } from 'node:path'

type Fs = Pick<
  typeof NodeFs,
  | 'chmodSync'
  | 'chownSync'
  | 'lchownSync'
  | 'linkSync'
  | 'lstatSync'
  | 'mkdirSync'
  | 'readdirSync'
  | 'symlinkSync'
  | 'writeFileSync'
>

/**
 * Makes a tree from one-line specs:
 * `file PATH MODE [GID]`, `dir PATH MODE [GID]`, `link PATH TARGET`, `hard PATH EXISTING`; paths are below `root`.
 */
export function makeTree(fs: Fs, root: string, specs: readonly string[]): void {
  fs.mkdirSync(root, { recursive: true })
  fs.chmodSync(root, 0o755)
  for (const spec of specs) {
    const [kind, path = '', what = '', gid] = spec.split(' ')
    const full = `${root}/${path}`
    fs.mkdirSync(dirname(full), { recursive: true })
    switch (kind) {
      case 'dir':
        fs.mkdirSync(full, { recursive: true })
        break
      case 'file':
        fs.writeFileSync(full, path)
        break
      case 'link':
        fs.symlinkSync(what, full)
        continue
      case 'hard':
        fs.linkSync(`${root}/${what}`, full)
        continue
      default:
        throw new Error(`spec not understood: ${spec}`)
    }
    if (gid !== undefined) fs.chownSync(full, 0, Number(gid))
    fs.chmodSync(full, Number.parseInt(what, 8))
  }
}

/** Until nothing made so far has a ctime that a walk holds for too recent to count hard links by. */
export function letTicksPass(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 50))
}

export interface Listed {
  mode: string
  gid: number
  /** Nanoseconds: whether anything touched the inode at all. */
  changed: bigint
}

/** Every inode below and including `root`, by relative path. */
export function listTree(fs: Fs, root: string, path = ''): Record<string, Listed> {
  const stat = fs.lstatSync(`${root}/${path}`, { bigint: true })
  const mode = (Number(stat.mode) & 0o7777).toString(8).padStart(4, '0')
  const listed: Record<string, Listed> = { [path || '.']: { mode, gid: Number(stat.gid), changed: stat.ctimeNs } }
  if (!stat.isDirectory()) return listed
  for (const name of fs.readdirSync(`${root}/${path}`)) {
    Object.assign(listed, listTree(fs, root, path ? `${path}/${name}` : name))
  }
  return listed
}

/** The modes alone, as the six-file table shows them. */
export function modes(listed: Record<string, Listed>): Record<string, string> {
  return Object.fromEntries(Object.entries(listed).map(([path, { mode }]) => [path, mode]))
}

export function groups(listed: Record<string, Listed>): Record<string, number> {
  return Object.fromEntries(Object.entries(listed).map(([path, { gid }]) => [path, gid]))
}

/** The six files of the headline promise. */
export const SIX_FILES = [
  'file test1 0644',
  'file test2 0000',
  'file test3 0410',
  'file test4 0111',
  'file test5 0440',
  'file test6 0660',
]
