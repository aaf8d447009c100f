import { createHash } from 'node:crypto'
import * as fs from 'node:fs'
import { basename, join } from 'node:path'
import { CACHE, cached } from './cache.ts'
import { run } from './command.ts'
import { download } from './mirrors.ts'
import type { Archive, PinnedFile } from './pinned.ts'

/**
 * The path of a file out of one of Debian's archives, in the cache, with the SHA-256 that is pinned.
 * @throws {Unavailable} where it is neither in the cache nor to be fetched
 */
export function debianFile({ archive, path, sum }: PinnedFile): string {
  const directory = basename(archive.address).replace(/\.(deb|tar\.gz)$/, '')
  return checked(`${directory}/${basename(path)}`, sum, (file) => {
    const whole = debianArchive(archive)
    const tree = `${file}.tree`
    fs.mkdirSync(tree)
    if (whole.endsWith('.deb')) run('dpkg-deb', ['-x', whole, tree])
    else run('tar', ['-xzf', whole, '-C', tree, path])
    fs.renameSync(join(tree, path), file)
  })
}

/** The path of one of Debian's archives in the same way. */
export function debianArchive({ address, sum }: Archive): string {
  return checked(basename(address), sum, (path) => download(address, sum, path))
}

/** Name and version of the package that an archive of the form `NAME_VERSION_ARCHITECTURE.deb` is. */
export function packageOf({ address }: Archive): { name: string; version: string } {
  const [name = '', version = ''] = basename(address).split('_')
  return { name, version }
}

function checked(name: string, sum: string, make: (path: string) => void): string {
  const path = join(CACHE, name)
  if (sumOf(path) === sum) return path
  // Whatever became of it in the cache, it is fetched again.
  fs.rmSync(path, { force: true })
  cached(name, make)
  const found = sumOf(path)
  if (found === sum) return path
  fs.rmSync(path)
  throw new Error(`${name} has the SHA-256 ${found}, but scripts/fetch/pinned.ts has ${sum}: correct it there`)
}

function sumOf(path: string): string | undefined {
  return fs.existsSync(path) ? createHash('sha256').update(fs.readFileSync(path)).digest('hex') : undefined
}
