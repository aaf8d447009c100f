import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Plugin } from 'esbuild'
import fs from 'fs-extra'
import { prepareApplication } from './application.ts'
import { assemble } from './assemble.ts'
import { kernelFile } from './compile-kernel.ts'
import { loaderFile } from './compile-loader.ts'
import { type Library, librariesFor } from './libraries.ts'
import { type Architecture, nodePackage } from './runtime.ts'

const DRIVER = join(import.meta.dirname, '../../driver')

export const ENTRY = join(DRIVER, 'main.ts')

/**
 * The executable for a processor. The same sources, lock file, libraries and building processor give the same bytes, wherever
 * and whenever it is made.
 */
export async function buildProgram(
  arch: Architecture,
  entry: string,
  given?: readonly Library[],
  plugins?: readonly Plugin[],
): Promise<Buffer> {
  const libraries = given ?? (await librariesFor(arch, console.warn))
  const building = process.arch as Architecture
  const workDirectory = await fs.mkdtemp(join(tmpdir(), 'modekeep-build-'))
  try {
    const node = join(await nodePackage(building), 'bin/node')
    return assemble({
      node: await fs.readFile(join(await nodePackage(arch), 'bin/node')),
      // V8's code cache holds for the kind of processor that made it; elsewhere Node would refuse it, or worse.
      application: await prepareApplication(node, entry, workDirectory, {
        codeCache: arch === building,
        plugins,
      }),
      loader: await fs.readFile(loaderFile(arch)),
      kernel: { soname: 'modekeep-kernel', bytes: await fs.readFile(kernelFile(arch)) },
      libraries,
    })
  } finally {
    await fs.remove(workDirectory)
  }
}
