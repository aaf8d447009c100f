import * as fs from 'node:fs'

export const GROUP = 2000
export const OLD_GROUP = 1000
const FILES_PER_DIRECTORY = 1000

/** A tree of empty files, 1,000 to a directory; root is their owner and group. */
export function makeTree(root: string, files: number): void {
  fs.mkdirSync(root, { recursive: true })
  for (let made = 0; made < files; made += FILES_PER_DIRECTORY) {
    const directory = `${root}/directory-${made / FILES_PER_DIRECTORY}`
    fs.mkdirSync(directory)
    const here = Math.min(FILES_PER_DIRECTORY, files - made)
    for (let file = 0; file < here; file++) fs.closeSync(fs.openSync(`${directory}/file-${file}`, 'w'))
  }
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
