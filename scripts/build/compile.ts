/** `node scripts/build/compile.ts [x64|arm64]`: compiles driver/loader and driver/kernel again. Only needed after a change there. */
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fs from 'fs-extra'
import { compileKernelAddon, resolveKernelAddonFile } from './compile-kernel.ts'
import { compileLoader, resolveLoaderFile } from './compile-loader.ts'
import { readCompilerMajorVersion } from './compilers.ts'

const COMPILER_RECORD_FILE = join(import.meta.dirname, '../../driver/compiled-with.json')
const [arch = process.arch] = process.argv.slice(2)

const workDirectory = await fs.mkdtemp(join(tmpdir(), 'modekeep-compile-'))
try {
  const made = [
    [resolveLoaderFile(arch), await compileLoader(arch, workDirectory)],
    [resolveKernelAddonFile(arch), await compileKernelAddon(arch, workDirectory)],
  ] as const
  for (const [file, bytes] of made) {
    await fs.writeFile(file, bytes)
    console.log(`${file}: ${bytes.length} bytes`)
  }
  await fs.writeJson(
    COMPILER_RECORD_FILE,
    { ...(await fs.readJson(COMPILER_RECORD_FILE)), [arch]: { gcc: await readCompilerMajorVersion(arch) } },
    { spaces: 2 },
  )
} finally {
  await fs.remove(workDirectory)
}
