import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fs from 'fs-extra'
import { describe, expect, it } from 'vitest'
import { compileKernel, kernelFile } from '../../scripts/build/compile-kernel.ts'
import { compileLoader, loaderFile } from '../../scripts/build/compile-loader.ts'
import { compilerMajor } from '../../scripts/build/compilers.ts'

const RECORD = join(import.meta.dirname, '../../driver/compiled-with.json')
const recorded: Record<string, { gcc: string }> = await fs.readJson(RECORD)

describe.each([
  ['loader', compileLoader, loaderFile],
  ['kernel', compileKernel, kernelFile],
])('the committed %s', (part, compile, fileOf) => {
  for (const [arch, { gcc }] of Object.entries(recorded)) {
    it(`for ${arch} is what gcc ${gcc} makes of driver/${part}`, async ({ skip }) => {
      const major = await compilerMajor(arch)
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
