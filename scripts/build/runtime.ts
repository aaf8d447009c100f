import { createHash } from 'node:crypto'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import fs from 'fs-extra'
import { provideCached } from '../fetch/cache.ts'
import { runCommand } from '../fetch/command.ts'
import { UnavailableError } from '../fetch/unavailable.ts'

const ROOT = join(import.meta.dirname, '../..')

export const ARCHITECTURES = ['x64', 'arm64'] as const
export type Architecture = (typeof ARCHITECTURES)[number]

/** The word for a processor that archives, Debian and Go have. */
export const DEBIAN_ARCHITECTURES = { x64: 'amd64', arm64: 'arm64' } as const satisfies Record<Architecture, string>

/** The directory of the npm package that holds Node for a processor, as it is published: `bin/node`, `LICENSE`. */
export async function provideNodePackage(arch: Architecture): Promise<string> {
  const name = `node-linux-${arch}`
  try {
    return join(createRequire(import.meta.url).resolve(`${name}/package.json`), '..')
  } catch {
    // npm installs it on that processor only.
    return fetchNodePackage(name)
  }
}

async function fetchNodePackage(name: string): Promise<string> {
  const { version, integrity } = (await fs.readJson(join(ROOT, 'package-lock.json'))).packages[`node_modules/${name}`]
  return provideCached(`${name}-${version}`, (place) => {
    console.log(`Fetching ${name} ${version} …`)
    const work = dirname(place)
    const archive = join(work, packPackage(`${name}@${version}`, work))
    assertPackageIntegrity(name, fs.readFileSync(archive), integrity)
    runCommand('tar', ['-xzf', archive, '-C', work, 'package'])
    fs.renameSync(join(work, 'package'), place)
  })
}

/** Fetches a package of npm as an archive in `directory`. @returns its name. @throws {UnavailableError} with the reason */
function packPackage(wanted: string, directory: string): string {
  try {
    return runCommand('npm', ['pack', '--loglevel=error', '--fetch-retries=5', wanted], { cwd: directory }).trim()
  } catch (error) {
    throw new UnavailableError(`${wanted} cannot be fetched: ${(error as Error).message}`)
  }
}

function assertPackageIntegrity(name: string, bytes: Buffer, integrity: unknown): void {
  const found = `sha512-${createHash('sha512').update(bytes).digest('base64')}`
  if (found !== integrity)
    throw new Error(`${name} is not what package-lock.json asks for (${integrity}): got ${found}`)
}
