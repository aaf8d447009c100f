/** `node scripts/build/compile.ts [x64|arm64]`: compiles driver/loader and driver/kernel again. Only needed after a change there. */
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fs from 'fs-extra'
import { compileKernel, kernelFile } from './compile-kernel.ts'
import { compileLoader, loaderFile } from './compile-loader.ts'
import { compilerMajor } from './compilers.ts'

const RECORD = join(import.meta.dirname, '../../driver/compiled-with.json')
const [arch = process.arch] = process.argv.slice(2)

const workDirectory = await fs.mkdtemp(join(tmpdir(), 'modekeep-compile-'))
try {
  const made = [
    [loaderFile(arch), await compileLoader(arch, workDirectory)],
    [kernelFile(arch), await compileKernel(arch, workDirectory)],
  ] as const
  for (const [file, bytes] of made) {
    await fs.writeFile(file, bytes)
    console.log(`${file}: ${bytes.length} bytes`)
  }
  await fs.writeJson(
    RECORD,
    { ...(await fs.readJson(RECORD)), [arch]: { gcc: await compilerMajor(arch) } },
    { spaces: 2 },
  )
} finally {
  await fs.remove(workDirectory)
}
