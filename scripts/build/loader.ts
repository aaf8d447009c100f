/** `node scripts/build/loader.ts [x64|arm64]`: compiles driver/loader again. Only needed after a change there. */
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fs from 'fs-extra'
import { compileLoader, compilerMajor, LOADER_DIRECTORY } from './compile-loader.ts'

const [arch = process.arch] = process.argv.slice(2)

const workDirectory = await fs.mkdtemp(join(tmpdir(), 'modekeep-loader-'))
try {
  const blob = await compileLoader(arch, workDirectory)
  await fs.writeFile(join(LOADER_DIRECTORY, `${arch}.bin`), blob)
  const record = join(LOADER_DIRECTORY, 'compiled-with.json')
  const versions = (await fs.pathExists(record)) ? await fs.readJson(record) : {}
  await fs.writeJson(record, { ...versions, [arch]: { gcc: await compilerMajor(arch) } }, { spaces: 2 })
  console.log(`driver/loader/${arch}.bin: ${blob.length} bytes`)
} finally {
  await fs.remove(workDirectory)
}
