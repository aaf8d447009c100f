import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import fs from 'fs-extra'
import { createTarArchive } from '../../src/cli/output/tar.ts'
import { createTreeEntries } from '../archive/tree.ts'
import { provideDebianLibraries } from '../build/libraries.ts'
import { buildProgram, DRIVER_ENTRY_FILE } from '../build/program.ts'
import { type Architecture, DEBIAN_ARCHITECTURES, provideNodePackage } from '../build/runtime.ts'
import { listBundledPackages } from './bundled.ts'
import { createCommonEntries, formatSha256Sums } from './contents.ts'
import { createExecutableSbom, type ExecutableIngredients } from './sbom.ts'

export interface ReleaseFile {
  path: string
  bytes: Buffer
}

export interface ReleasedArchive {
  files: ReleaseFile[]
  /** The executable in the archive. */
  program: Buffer
}

/**
 * The archive for a processor, and its bill of materials, which is in it too. It carries Debian's libraries and no others.
 * @param time that all of it bears, in seconds since 1970
 * @throws {Unavailable} where Debian's libraries cannot be fetched
 */
export async function createReleaseArchive(
  arch: Architecture,
  version: string,
  time: number,
): Promise<ReleasedArchive> {
  const node = await provideNodePackage(arch)
  const carried = provideDebianLibraries(arch)
  const [program, packages] = [
    await buildProgram(arch, DRIVER_ENTRY_FILE, carried),
    await listBundledPackages(DRIVER_ENTRY_FILE),
  ]
  const sbom = Buffer.from(`${JSON.stringify(createExecutableSbom(await ingredients()), null, 2)}\n`)
  const entries = [
    { path: 'modekeep', bytes: program, isProgram: true },
    { path: 'sbom.cdx.json', bytes: sbom },
    ...(await createCommonEntries(join(node, 'LICENSE'), packages, carried.glibcVersion)),
  ]
  const all = [...entries, { path: 'SHA256SUMS', bytes: Buffer.from(formatSha256Sums(entries)) }]
  const name = `modekeep-${version}-linux-${DEBIAN_ARCHITECTURES[arch]}`
  return {
    program,
    files: [
      { path: `${name}.tar.gz`, bytes: gzipSync(createTarArchive(createTreeEntries(name, all), time), { level: 6 }) },
      { path: `${name}.cdx.json`, bytes: sbom },
    ],
  }

  async function ingredients(): Promise<ExecutableIngredients> {
    const { version: nodeVersion } = await fs.readJson(join(node, 'package.json'))
    // Both processors' packages are of one version: what the building Node says of its parts holds for the other.
    if (nodeVersion !== process.versions.node)
      throw new Error(`Node ${process.versions.node} builds one of ${nodeVersion}`)
    return {
      version,
      arch,
      time,
      program,
      packages,
      node: { version: nodeVersion, bytes: await fs.readFile(join(node, 'bin/node')), parts: process.versions },
      carried,
    }
  }
}
