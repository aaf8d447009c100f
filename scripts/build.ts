import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { execa } from 'execa'
import fs from 'fs-extra'
import { prepareApplication } from './build/application.ts'
import { assemble } from './build/assemble.ts'

const ROOT = resolve(import.meta.dirname, '..')
const LIBRARIES = ['libstdc++.so.6', 'libgcc_s.so.1', 'libatomic.so.1']

const [entry = join(ROOT, 'driver/main.ts'), output = join(ROOT, 'dist/modekeep')] = process.argv.slice(2)

const node = createRequire(import.meta.url).resolve(`node-linux-${process.arch}/bin/node`)
const workDirectory = await fs.mkdtemp(join(tmpdir(), 'modekeep-build-'))
try {
  const program = assemble({
    node: await fs.readFile(node),
    application: await prepareApplication(node, resolve(entry), workDirectory),
    loader: await fs.readFile(join(ROOT, `driver/loader/${process.arch}.bin`)),
    libraries: await Promise.all(
      LIBRARIES.map(async (soname) => ({
        soname,
        bytes: await fs.readFile(join(ROOT, 'driver/runtime', process.arch, soname)),
      })),
    ),
  })
  const unfinished = `${output}.${process.pid}.new`
  await fs.outputFile(unfinished, program)
  await fs.chmod(unfinished, 0o755)
  await fs.rename(unfinished, output)
  console.log(`${output}: ${(program.length / 1e6).toFixed(1)} MB`)
} finally {
  await fs.remove(workDirectory)
}
await execa(node, [join(ROOT, 'scripts/build/measure.ts'), output, node], { stdio: 'inherit' })
