import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import fs from 'fs-extra'
import { ARCHITECTURES, type Architecture } from './build/runtime.ts'
import { endFor } from './fetch/unavailable.ts'
import { archiveFor, type ReleaseFile } from './release/archive.ts'
import { sumsOf } from './release/contents.ts'
import { imageFor, type Program } from './release/image.ts'
import { KEY, signatureOf } from './release/signature.ts'
import { sourceDate } from './release/source-date.ts'

const ROOT = resolve(import.meta.dirname, '..')

const USAGE = `Usage: npm run release -- [--arch ${ARCHITECTURES.join('|')}]... [--output DIR]

Makes an archive for each processor (default: all), its bill of materials, one image for them, and SHA256SUMS, in DIR (default: dist/release).
With ${KEY}=FILE, an SSH key, also SHA256SUMS.sig.`

const { architectures, output } = order()
const { version } = await fs.readJson(join(ROOT, 'package.json'))
const time = await sourceDate(ROOT, process.env.SOURCE_DATE_EPOCH)
const key = process.env[KEY] ?? ''
// Before all the work: what would be wrong with the key is said now.
if (key !== '') await signed(Buffer.alloc(0))
const files: ReleaseFile[] = []
const programs: Program[] = []
try {
  for (const arch of architectures) {
    const released = await archiveFor(arch, version, time)
    files.push(...released.files)
    programs.push({ arch, program: released.program })
  }
  files.push(...imageFor(version, programs, time))
} catch (error) {
  endFor('release')(error)
}
const sums = { path: 'SHA256SUMS', bytes: Buffer.from(sumsOf(files)) }
const signature = key === '' ? [] : [{ path: 'SHA256SUMS.sig', bytes: await signed(sums.bytes) }]
// One of an earlier release would be wrong for these sums.
await fs.remove(join(output, 'SHA256SUMS.sig'))
for (const file of [...files, sums, ...signature]) {
  await fs.outputFile(join(output, `${file.path}.new`), file.bytes)
  await fs.rename(join(output, `${file.path}.new`), join(output, file.path))
  console.log(`${join(output, file.path)}: ${(file.bytes.length / 1e6).toFixed(1)} MB`)
}
if (key === '') console.log(`not signed: ${KEY} names no key`)

function signed(bytes: Buffer): Promise<Buffer> {
  return signatureOf(bytes, key).catch((error: Error) => {
    console.error(`release: ${error.message}`)
    process.exit(1)
  })
}

function order(): { architectures: readonly Architecture[]; output: string } {
  const { arch = ARCHITECTURES, output = join(ROOT, 'dist/release') } = parsed()
  const unknown = arch.filter((name) => !ARCHITECTURES.some((known) => known === name))
  if (unknown.length > 0) misuse(`--arch is ${unknown[0]}: use ${ARCHITECTURES.join(' or ')}`)
  return { architectures: ARCHITECTURES.filter((known) => arch.includes(known)), output: resolve(output) }
}

function parsed() {
  try {
    return parseArgs({ options: { arch: { type: 'string', multiple: true }, output: { type: 'string' } } }).values
  } catch (error) {
    return misuse((error as Error).message)
  }
}

function misuse(what: string): never {
  console.error(`release: ${what}\n${USAGE}`)
  process.exit(2)
}
