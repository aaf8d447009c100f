import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Plugin } from 'esbuild'
import fs from 'fs-extra'
import { prepareApplication } from './application.ts'
import { assembleExecutable } from './assemble.ts'
import { resolveKernelAddonFile } from './compile-kernel.ts'
import { resolveLoaderFile } from './compile-loader.ts'
import { type CarriedLibraries, provideLibraries } from './libraries.ts'
import { type Architecture, provideNodePackage } from './runtime.ts'

const DRIVER_DIRECTORY = join(import.meta.dirname, '../../driver')

export const DRIVER_ENTRY_FILE = join(DRIVER_DIRECTORY, 'main.ts')

/**
 * The executable for a processor. The same sources, lock file, libraries and building processor give the same bytes, wherever
 * and whenever it is made.
 */
export async function buildProgram(
  arch: Architecture,
  entry: string,
  given?: CarriedLibraries,
  plugins?: readonly Plugin[],
): Promise<Buffer> {
  const { interpreter, libraries, glibcVersion } = given ?? (await provideLibraries(arch, console.warn))
  const building = process.arch as Architecture
  const workDirectory = await fs.mkdtemp(join(tmpdir(), 'modekeep-build-'))
  try {
    const node = join(await provideNodePackage(building), 'bin/node')
    return assembleExecutable({
      node: await fs.readFile(join(await provideNodePackage(arch), 'bin/node')),
      // V8's code cache holds for the kind of processor that made it; elsewhere Node would refuse it, or worse.
      application: await prepareApplication(node, entry, workDirectory, {
        codeCache: arch === building,
        glibcVersion,
        plugins,
      }),
      loader: await fs.readFile(resolveLoaderFile(arch)),
      kernel: { soname: 'modekeep-kernel', bytes: await fs.readFile(resolveKernelAddonFile(arch)) },
      libraries,
      interpreter,
    })
  } finally {
    await fs.remove(workDirectory)
  }
}
