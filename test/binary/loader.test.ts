import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fs from 'fs-extra'
import { describe, expect, it } from 'vitest'
import { compileLoader, compilerMajor, LOADER_DIRECTORY } from '../../scripts/build/compile-loader.ts'

const recorded: Record<string, { gcc: string }> = await fs.readJson(join(LOADER_DIRECTORY, 'compiled-with.json'))

describe('the committed loader', () => {
  for (const [arch, { gcc }] of Object.entries(recorded)) {
    it(`for ${arch} is what gcc ${gcc} makes of driver/loader`, async ({ skip }) => {
      const major = await compilerMajor(arch)
      if (major !== gcc)
        skip(`found ${major ? `gcc ${major}` : 'no gcc'} for ${arch}: install gcc ${gcc} to compare the bytes`)

      const workDirectory = await fs.mkdtemp(join(tmpdir(), 'modekeep-loader-'))
      try {
        const compiled = await compileLoader(arch, workDirectory)
        const committed = await fs.readFile(join(LOADER_DIRECTORY, `${arch}.bin`))
        expect(compiled.equals(committed), 'run: node scripts/build/loader.ts').toBe(true)
      } finally {
        await fs.remove(workDirectory)
      }
    })
  }
})
