import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fs from 'fs-extra'
import { prepareApplication } from './application.ts'
import { assemble } from './assemble.ts'
import { type Architecture, nodePackage } from './runtime.ts'

const DRIVER = join(import.meta.dirname, '../../driver')

export const ENTRY = join(DRIVER, 'main.ts')

/** Node needs them, and hosts may lack them: see driver/runtime/README.md. */
export const LIBRARIES = ['libstdc++.so.6', 'libgcc_s.so.1', 'libatomic.so.1'] as const

export function libraryFile(arch: Architecture, soname: string): string {
  return join(DRIVER, 'runtime', arch, soname)
}

/**
 * The executable for a processor. The same sources, lock file and building processor give the same bytes, wherever and
 * whenever it is made.
 */
export async function buildProgram(arch: Architecture, entry: string): Promise<Buffer> {
  const building = process.arch as Architecture
  const workDirectory = await fs.mkdtemp(join(tmpdir(), 'modekeep-build-'))
  try {
    const node = join(await nodePackage(building), 'bin/node')
    return assemble({
      node: await fs.readFile(join(await nodePackage(arch), 'bin/node')),
      // V8's code cache holds for the kind of processor that made it; elsewhere Node would refuse it, or worse.
      application: await prepareApplication(node, entry, workDirectory, { codeCache: arch === building }),
      loader: await fs.readFile(join(DRIVER, `loader/${arch}.bin`)),
      libraries: await Promise.all(
        LIBRARIES.map(async (soname) => ({ soname, bytes: await fs.readFile(libraryFile(arch, soname)) })),
      ),
    })
  } finally {
    await fs.remove(workDirectory)
  }
}
