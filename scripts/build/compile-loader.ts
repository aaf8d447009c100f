import { join } from 'node:path'
import { execa } from 'execa'
import fs from 'fs-extra'
import { FREESTANDING_FLAGS, getCompiler } from './compilers.ts'

/** Position independent, no vector registers, no table of addresses: see driver/loader/loader.ld. */
const LOADER_FLAGS = [
  '-Os',
  '-fPIE',
  '-fno-jump-tables',
  '-fno-tree-switch-conversion',
  '-mgeneral-regs-only',
  '-pie',
  '-Wl,--no-dynamic-linker',
]

const LOADER_DIRECTORY = join(import.meta.dirname, '../../driver/loader')

export const resolveLoaderFile = (arch: string): string => join(LOADER_DIRECTORY, `${arch}.bin`)

/** driver/loader as one block of bytes. */
export async function compileLoader(arch: string, workDirectory: string): Promise<Buffer> {
  const { gcc, objcopy, flags } = getCompiler(arch)
  const names = (await fs.readdir(LOADER_DIRECTORY)).filter((name) => name.endsWith('.c')).sort()
  const [elf, blob] = [join(workDirectory, `${arch}.elf`), join(workDirectory, `${arch}.bin`)]
  const cwd = LOADER_DIRECTORY
  await execa(
    gcc,
    [...FREESTANDING_FLAGS, ...LOADER_FLAGS, ...flags, '-Wl,-T,loader.ld', `${arch}.S`, ...names, '-o', elf],
    { cwd },
  )
  await execa(objcopy, ['-O', 'binary', '-j', '.blob', elf, blob])
  return fs.readFile(blob)
}
