import { createHash } from 'node:crypto'
import * as fs from 'node:fs'
import { basename, join } from 'node:path'
import { CACHE_DIRECTORY, provideCached } from './cache.ts'
import { runCommand } from './command.ts'
import { downloadFromMirrors } from './mirrors.ts'
import type { PinnedArchive, PinnedFile } from './pinned.ts'

/**
 * The path of a file out of one of Debian's archives, in the cache, with the SHA-256 that is pinned.
 * @throws {Unavailable} where it is neither in the cache nor to be fetched
 */
export function provideDebianFile({ archive, path, sum }: PinnedFile): string {
  const directory = basename(archive.address).replace(/\.(deb|tar\.gz)$/, '')
  return provideVerifiedFile(`${directory}/${basename(path)}`, sum, (file) => {
    const whole = provideDebianArchive(archive)
    const tree = `${file}.tree`
    fs.mkdirSync(tree)
    if (whole.endsWith('.deb')) runCommand('dpkg-deb', ['-x', whole, tree])
    else runCommand('tar', ['-xzf', whole, '-C', tree, path])
    fs.renameSync(join(tree, path), file)
  })
}

/** The path of one of Debian's archives in the same way. */
export function provideDebianArchive({ address, sum }: PinnedArchive): string {
  return provideVerifiedFile(basename(address), sum, (path) => downloadFromMirrors(address, sum, path))
}

/** Name and version of the package that an archive of the form `NAME_VERSION_ARCHITECTURE.deb` is. */
export function parseArchivePackage({ address }: PinnedArchive): { name: string; version: string } {
  const [name = '', version = ''] = basename(address).split('_')
  return { name, version }
}

function provideVerifiedFile(name: string, sum: string, make: (path: string) => void): string {
  const path = join(CACHE_DIRECTORY, name)
  if (computeFileSum(path) === sum) return path
  // Whatever became of it in the cache, it is fetched again.
  fs.rmSync(path, { force: true })
  provideCached(name, make)
  const found = computeFileSum(path)
  if (found === sum) return path
  fs.rmSync(path)
  throw new Error(`${name} has the SHA-256 ${found}, but scripts/fetch/pinned.ts has ${sum}: correct it there`)
}

function computeFileSum(path: string): string | undefined {
  return fs.existsSync(path) ? createHash('sha256').update(fs.readFileSync(path)).digest('hex') : undefined
}
