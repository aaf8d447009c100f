import { createRequire } from 'node:module'
import { join } from 'node:path'
import fs from 'fs-extra'
import { provideFromPackage } from '../fetch/npm.ts'

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
  return provideFromPackage({ name, version, integrity }, `${name}-${version}`, (unpacked, path) =>
    fs.renameSync(unpacked, path),
  )
}
