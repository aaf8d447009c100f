import * as fs from 'node:fs'
import { SHAPES, type Shape } from './trees.ts'

export const GROUP = 2000
export const OLD_GROUP = 1000

/** A tree of empty files; root is their owner, and group and modes are as before anybody's walk. */
export function makeTree(root: string, files: number, shape: Shape = 'directories of 1,000'): void {
  const { perDirectory, links } = SHAPES[shape]
  fs.mkdirSync(root, { recursive: true })
  let directory = root
  let inode = ''
  for (let file = 0; file < files; file++) {
    if (perDirectory < Number.POSITIVE_INFINITY && file % perDirectory === 0) {
      directory = `${root}/directory-${file / perDirectory}`
      fs.mkdirSync(directory)
    }
    const path = `${directory}/file-${file}`
    if (file % links > 0) fs.linkSync(inode, path)
    else fs.closeSync(fs.openSync(path, 'w'))
    if (file % links === 0) inode = path
  }
  resetTree(root)
}

/** Group and modes as before anybody's walk: every inode has to change. */
export function resetTree(root: string): void {
  each(root, (path, isDirectory) => {
    fs.chownSync(path, 0, OLD_GROUP)
    fs.chmodSync(path, isDirectory ? 0o755 : 0o644)
  })
}

/** What is on disk after a walk: the group, and the permission bits added to files and to directories. */
export interface Access {
  group: number
  file: number
  directory: number
}

/** As `resetTree` left it. */
export const UNTOUCHED: Access = { group: OLD_GROUP, file: 0, directory: 0 }

/**
 * Whether a walk did its work on every inode: the group, and the bits added to what `resetTree` left.
 * @throws {Error} naming the first inode that is different
 */
export function checkTree(root: string, { group, file, directory }: Access): void {
  each(root, (path, isDirectory) => {
    const stat = fs.lstatSync(path)
    const want = isDirectory ? 0o755 | directory : 0o644 | file
    if (stat.gid === group && (stat.mode & 0o7777) === want) return
    const found = `group ${stat.gid}, mode ${(stat.mode & 0o7777).toString(8)}`
    throw new Error(`${path}: expected group ${group}, mode ${want.toString(8)}, found ${found}`)
  })
}

function each(root: string, visit: (path: string, isDirectory: boolean) => void): void {
  for (const entry of fs.readdirSync(root, { withFileTypes: true })) {
    const path = `${root}/${entry.name}`
    if (entry.isDirectory()) each(path, visit)
    else visit(path, false)
  }
  visit(root, true)
}
