import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fs from 'fs-extra'
import { bundleScript, listBundleEntries } from '../build/application.ts'

const ROOT = join(import.meta.dirname, '../..')

/** An npm package of which the executable has at least one file. */
export interface BundledPackage {
  name: string
  version: string
  /** As its package.json says it (SPDX). */
  license: string
  /** The text, where it comes with one. */
  licenseText: string | undefined
  /** Subresource integrity of its archive, where the lock file knows it. */
  integrity: string | undefined
}

/** What the bundles are really made of: not all that is installed, and not all that package.json names. */
export async function listBundledPackages(entry: string): Promise<BundledPackage[]> {
  const work = await fs.mkdtemp(join(tmpdir(), 'modekeep-bundle-'))
  try {
    const files: string[] = []
    for (const { source, name } of listBundleEntries(entry))
      files.push(...(await bundleScript(source, join(work, name))))
    const directories = new Set(files.flatMap((file) => findPackageDirectory(file) ?? []))
    const { packages } = await fs.readJson(join(ROOT, 'package-lock.json'))
    return Promise.all([...directories].sort().map((directory) => describeBundledPackage(directory, packages)))
  } finally {
    await fs.remove(work)
  }
}

/** From the last `node_modules` of a path on, so that nested packages count as their own. */
function findPackageDirectory(file: string): string | undefined {
  return /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(file)?.[0]
}

async function describeBundledPackage(
  directory: string,
  locked: Record<string, { integrity?: string }>,
): Promise<BundledPackage> {
  const { name, version, license } = await fs.readJson(join(directory, 'package.json'))
  const file = (await fs.readdir(directory)).find((entry) => /^licen[cs]e(\.|$)/i.test(entry))
  return {
    name,
    version,
    license,
    licenseText: file === undefined ? undefined : await fs.readFile(join(directory, file), 'utf8'),
    integrity: locked[directory.slice(directory.indexOf('node_modules/'))]?.integrity,
  }
}
