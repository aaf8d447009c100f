import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { execa } from 'execa'
import fs from 'fs-extra'
import { buildProgram, ENTRY } from './build/program.ts'
import { ARCHITECTURES, type Architecture, nodePackage } from './build/runtime.ts'
import { endFor } from './fetch/unavailable.ts'

const USAGE = `Usage: npm run build -- [--arch ${ARCHITECTURES.join('|')}] [ENTRY [OUTPUT]]

Builds dist/modekeep for this machine's processor, or dist/modekeep-ARCH for the other.`

const { arch, entry, output } = order()
const isOwn = arch === process.arch
const program = await buildProgram(arch, entry).catch(endFor('build'))
const unfinished = `${output}.${process.pid}.new`
await fs.outputFile(unfinished, program)
await fs.chmod(unfinished, 0o755)
await fs.rename(unfinished, output)
console.log(`${output}: ${(program.length / 1e6).toFixed(1)} MB${isOwn ? '' : ` for ${arch}, not started here`}`)
if (isOwn) {
  const node = join(await nodePackage(arch), 'bin/node')
  await execa(node, [join(import.meta.dirname, 'build/measure.ts'), output, node], { stdio: 'inherit' })
}

function order() {
  const { values, positionals } = parsed()
  const arch = ARCHITECTURES.find((known) => known === (values.arch ?? process.arch))
  if (arch === undefined) misuse(`--arch is ${values.arch ?? process.arch}: use ${ARCHITECTURES.join(' or ')}`)
  const name = arch === process.arch ? 'modekeep' : `modekeep-${arch}`
  const [entry = ENTRY, output = join(import.meta.dirname, '../dist', name)] = positionals
  return { arch, entry: resolve(entry), output: resolve(output) } satisfies { arch: Architecture } & Record<
    string,
    string
  >
}

function parsed() {
  try {
    return parseArgs({ options: { arch: { type: 'string' } }, allowPositionals: true })
  } catch (error) {
    return misuse((error as Error).message)
  }
}

function misuse(what: string): never {
  console.error(`build: ${what}\n${USAGE}`)
  process.exit(2)
}
