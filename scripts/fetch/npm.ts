import { createHash } from 'node:crypto'
import * as fs from 'node:fs'
import { dirname, join } from 'node:path'
import { provideCached } from './cache.ts'
import { runCommand } from './command.ts'
import type { PinnedPackage } from './pinned.ts'
import { UnavailableError } from './unavailable.ts'

/**
 * Returns the path of what `make` creates from a package, in the cache. npm fetches the package with the user's settings.
 * @param cached the name in the cache
 * @param make gets the directory of the unpacked package, and the path to create
 * @throws {UnavailableError} if the package is neither cached nor can be fetched
 */
export function provideFromPackage(
  { name, version, integrity }: PinnedPackage,
  cached: string,
  make: (unpacked: string, path: string) => void,
): string {
  return provideCached(cached, (path) => {
    console.log(`Fetching ${name} ${version} …`)
    const work = dirname(path)
    const archive = join(work, packPackage(`${name}@${version}`, work))
    assertPackageIntegrity(name, fs.readFileSync(archive), integrity)
    runCommand('tar', ['-xzf', archive, '-C', work, 'package'])
    make(join(work, 'package'), path)
  })
}

/** Fetches a package's archive into `directory`. @returns the file's name */
function packPackage(wanted: string, directory: string): string {
  try {
    return runCommand('npm', ['pack', '--loglevel=error', '--fetch-retries=5', wanted], { cwd: directory }).trim()
  } catch (error) {
    throw new UnavailableError(`${wanted} cannot be fetched: ${(error as Error).message}`)
  }
}

function assertPackageIntegrity(name: string, bytes: Buffer, integrity: string): void {
  const found = `sha512-${createHash('sha512').update(bytes).digest('base64')}`
  if (found !== integrity) throw new Error(`${name} has the integrity ${found}, but ${integrity} is pinned`)
}
