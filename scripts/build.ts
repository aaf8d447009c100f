import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { execa } from 'execa'
import fs from 'fs-extra'
import { buildProgram, DRIVER_ENTRY_FILE } from './build/program.ts'
import { ARCHITECTURES, type Architecture, provideNodePackage } from './build/runtime.ts'
import { createUnavailableExit } from './fetch/unavailable.ts'

const USAGE = `Usage: npm run build -- [--arch ${ARCHITECTURES.join('|')}] [ENTRY [OUTPUT]]

Builds dist/modekeep for this machine's processor, or dist/modekeep-ARCH for the other.`

const { arch, entry, output } = parseBuildOptions()
const isOwnArchitecture = arch === process.arch
const program = await buildProgram(arch, entry).catch(createUnavailableExit('build'))
const temporaryOutput = `${output}.${process.pid}.new`
await fs.outputFile(temporaryOutput, program)
await fs.chmod(temporaryOutput, 0o755)
await fs.rename(temporaryOutput, output)
console.log(
  `${output}: ${(program.length / 1e6).toFixed(1)} MB${isOwnArchitecture ? '' : ` for ${arch}, not started here`}`,
)
if (isOwnArchitecture) {
  const node = join(await provideNodePackage(arch), 'bin/node')
  await execa(node, [join(import.meta.dirname, 'build/measure.ts'), output, node], { stdio: 'inherit' })
}

function parseBuildOptions() {
  const { values, positionals } = parseBuildArguments()
  const arch = ARCHITECTURES.find((known) => known === (values.arch ?? process.arch))
  if (arch === undefined) exitWithUsage(`--arch is ${values.arch ?? process.arch}: use ${ARCHITECTURES.join(' or ')}`)
  const name = arch === process.arch ? 'modekeep' : `modekeep-${arch}`
  const [entry = DRIVER_ENTRY_FILE, output = join(import.meta.dirname, '../dist', name)] = positionals
  return { arch, entry: resolve(entry), output: resolve(output) } satisfies { arch: Architecture } & Record<
    string,
    string
  >
}

function parseBuildArguments() {
  try {
    return parseArgs({ options: { arch: { type: 'string' } }, allowPositionals: true })
  } catch (error) {
    return exitWithUsage((error as Error).message)
  }
}

function exitWithUsage(what: string): never {
  console.error(`build: ${what}\n${USAGE}`)
  process.exit(2)
}
