import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { execa } from 'execa'
import fs from 'fs-extra'
import { describe, expect, it } from 'vitest'
import { compileKernelAddon, resolveKernelAddonFile } from '../../scripts/build/compile-kernel.ts'
import { compileLoader, resolveLoaderFile } from '../../scripts/build/compile-loader.ts'
import { getCompiler, readCompilerMajorVersion } from '../../scripts/build/compilers.ts'

const RECORD = join(import.meta.dirname, '../../driver/compiled-with.json')
const recorded: Record<string, { gcc: string }> = await fs.readJson(RECORD)

describe.each([
  ['loader', compileLoader, resolveLoaderFile],
  ['kernel', compileKernelAddon, resolveKernelAddonFile],
])('the committed %s', (part, compile, fileOf) => {
  for (const [arch, { gcc }] of Object.entries(recorded)) {
    it(`for ${arch} equals the output of gcc ${gcc} for driver/${part}`, async ({ skip }) => {
      const major = await readCompilerMajorVersion(arch)
      if (major !== gcc)
        skip(`found ${major ? `gcc ${major}` : 'no gcc'} for ${arch}: install gcc ${gcc} to compare the bytes`)

      const workDirectory = await fs.mkdtemp(join(tmpdir(), 'modekeep-compile-'))
      try {
        const compiled = await compile(arch, workDirectory)
        const committed = await fs.readFile(fileOf(arch))
        expect(compiled.equals(committed), `run: node scripts/build/compile.ts ${arch}`).toBe(true)
      } finally {
        await fs.remove(workDirectory)
      }
    })
  }
})

const DRIVER = join(import.meta.dirname, '../../driver')

describe('the system call numbers', () => {
  it.for(Object.keys(recorded))("for %s equal those in the system's headers", async (arch, { skip }) => {
    if ((await readCompilerMajorVersion(arch)) === undefined)
      skip(`found no gcc for ${arch}: install it to compare them`)
    const sources = [`loader/${arch}.h`, `kernel/${arch}.h`, 'kernel/calls.h'].map((name) =>
      fs.readFileSync(join(DRIVER, name), 'utf8'),
    )
    const numbers = [...sources.join('').matchAll(/\b(SYS_\w+) = (\d+)/g)]
    expect(numbers.length).toBeGreaterThan(40)
    // Debian 12's headers are older than the newest calls.
    const lines = numbers.map(([, name, number]) => `#ifdef ${name}\n_Static_assert(${name} == ${number}, "");\n#endif`)
    const input = ['#include <sys/syscall.h>', ...lines].join('\n')
    await execa(getCompiler(arch).gcc, ['-fsyntax-only', '-x', 'c', '-'], { input })
  })
})
