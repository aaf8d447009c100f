import { execa } from 'execa'

const COMPILERS: Record<string, { gcc: string; objcopy: string; flags: string[] }> = {
  x64: { gcc: 'x86_64-linux-gnu-gcc', objcopy: 'x86_64-linux-gnu-objcopy', flags: ['-fcf-protection=none'] },
  arm64: { gcc: 'aarch64-linux-gnu-gcc', objcopy: 'aarch64-linux-gnu-objcopy', flags: ['-mno-outline-atomics'] },
}

/** Of all C in the product: there is no libc below it, and the same source gives the same bytes. */
export const FREESTANDING_FLAGS = [
  '-std=c11',
  '-Wall',
  '-Wextra',
  '-Werror',
  '-ffreestanding',
  '-fvisibility=hidden',
  '-fno-stack-protector',
  '-fno-asynchronous-unwind-tables',
  '-fno-tree-loop-distribute-patterns',
  '-fno-ident',
  '-nostdlib',
  '-Wl,--build-id=none',
  '-Wl,-z,norelro',
]

/** The first number of the compiler's version, or nothing when it is not installed. */
export async function readCompilerMajorVersion(arch: string): Promise<string | undefined> {
  const { stdout, failed } = await execa(getCompiler(arch).gcc, ['-dumpversion'], { reject: false })
  return failed ? undefined : stdout.split('.')[0]
}

export function getCompiler(arch: string) {
  const tools = COMPILERS[arch]
  if (!tools) throw new Error(`no C is compiled for ${arch}; it is for ${Object.keys(COMPILERS).join(', ')}`)
  return tools
}
