import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import fs from 'fs-extra'
import { tar } from '../archive/tar.ts'
import { treeOf } from '../archive/tree.ts'
import { debianLibraries } from '../build/libraries.ts'
import { buildProgram, ENTRY } from '../build/program.ts'
import { type Architecture, nodePackage, PROCESSOR } from '../build/runtime.ts'
import { bundledPackages } from './bundled.ts'
import { commonEntries, sumsOf } from './contents.ts'
import { type Ingredients, sbomOf } from './sbom.ts'

export interface ReleaseFile {
  path: string
  bytes: Buffer
}

export interface Released {
  files: ReleaseFile[]
  /** The executable in the archive. */
  program: Buffer
}

/**
 * The archive for a processor, and its bill of materials, which is in it too. It carries Debian's libraries and no others.
 * @param time that all of it bears, in seconds since 1970
 * @throws {Unavailable} where Debian's libraries cannot be fetched
 */
export async function archiveFor(arch: Architecture, version: string, time: number): Promise<Released> {
  const node = await nodePackage(arch)
  const libraries = debianLibraries(arch)
  const [program, packages] = [await buildProgram(arch, ENTRY, libraries), await bundledPackages(ENTRY)]
  const sbom = Buffer.from(`${JSON.stringify(sbomOf(await ingredients()), null, 2)}\n`)
  const entries = [
    { path: 'modekeep', bytes: program, isProgram: true },
    { path: 'sbom.cdx.json', bytes: sbom },
    ...(await commonEntries(join(node, 'LICENSE'), packages)),
  ]
  const all = [...entries, { path: 'SHA256SUMS', bytes: Buffer.from(sumsOf(entries)) }]
  const name = `modekeep-${version}-linux-${PROCESSOR[arch]}`
  return {
    program,
    files: [
      { path: `${name}.tar.gz`, bytes: gzipSync(tar(treeOf(name, all), time), { level: 6 }) },
      { path: `${name}.cdx.json`, bytes: sbom },
    ],
  }

  async function ingredients(): Promise<Ingredients> {
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
      libraries,
    }
  }
}
