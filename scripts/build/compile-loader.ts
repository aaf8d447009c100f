import { join } from 'node:path'
import { execa } from 'execa'
import fs from 'fs-extra'

/** Freestanding, position independent, no vector registers, no table of addresses: see driver/loader/loader.ld. */
const FLAGS = [
  '-std=c11',
  '-Os',
  '-Wall',
  '-Wextra',
  '-Werror',
  '-ffreestanding',
  '-fPIE',
  '-fvisibility=hidden',
  '-fno-stack-protector',
  '-fno-asynchronous-unwind-tables',
  '-fno-tree-loop-distribute-patterns',
  '-fno-jump-tables',
  '-fno-tree-switch-conversion',
  '-fno-ident',
  '-mgeneral-regs-only',
  '-nostdlib',
  '-pie',
  '-Wl,--no-dynamic-linker',
  '-Wl,--build-id=none',
  '-Wl,-z,norelro',
]

export const LOADER_DIRECTORY = join(import.meta.dirname, '../../driver/loader')

const COMPILERS: Record<string, { gcc: string; objcopy: string; flags: string[] }> = {
  x64: { gcc: 'x86_64-linux-gnu-gcc', objcopy: 'x86_64-linux-gnu-objcopy', flags: ['-fcf-protection=none'] },
  arm64: { gcc: 'aarch64-linux-gnu-gcc', objcopy: 'aarch64-linux-gnu-objcopy', flags: ['-mno-outline-atomics'] },
}

/** The first number of the compiler's version, or nothing when it is not installed. */
export async function compilerMajor(arch: string): Promise<string | undefined> {
  const { stdout, failed } = await execa(toolsFor(arch).gcc, ['-dumpversion'], { reject: false })
  return failed ? undefined : stdout.split('.')[0]
}

export async function compileLoader(arch: string, workDirectory: string): Promise<Buffer> {
  const { gcc, objcopy, flags } = toolsFor(arch)
  const names = (await fs.readdir(LOADER_DIRECTORY)).filter((name) => name.endsWith('.c')).sort()
  const [elf, blob] = [join(workDirectory, `${arch}.elf`), join(workDirectory, `${arch}.bin`)]
  const cwd = LOADER_DIRECTORY
  await execa(gcc, [...FLAGS, ...flags, '-Wl,-T,loader.ld', `${arch}.S`, ...names, '-o', elf], { cwd })
  await execa(objcopy, ['-O', 'binary', '-j', '.blob', elf, blob])
  return fs.readFile(blob)
}

function toolsFor(arch: string) {
  const tools = COMPILERS[arch]
  if (!tools) throw new Error(`no loader is written for ${arch}; there is one for ${Object.keys(COMPILERS).join(', ')}`)
  return tools
}
