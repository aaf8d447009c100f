import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import fs from 'fs-extra'
import { ARCHITECTURES, type Architecture } from './build/runtime.ts'
import { createUnavailableExit } from './fetch/unavailable.ts'
import { createReleaseArchive, type ReleaseFile } from './release/archive.ts'
import { createReleaseChart } from './release/chart.ts'
import { formatSha256Sums } from './release/contents.ts'
import { createReleaseImage, type ReleasedProgram } from './release/image.ts'
import {
  createReleaseKubectlPlugin,
  KREW_MANIFEST_FILE,
  parseReleaseUrl,
  RELEASE_URL_VARIABLE,
} from './release/kubectl-plugin.ts'
import { createSignature, SIGNING_KEY_VARIABLE } from './release/signature.ts'
import { readSourceDate } from './release/source-date.ts'

const ROOT = resolve(import.meta.dirname, '..')

const USAGE = `Usage: npm run release -- [--arch ${ARCHITECTURES.join('|')}]... [--output DIR]

Makes an archive for each processor (default: all), its bill of materials, one image for them, the chart, the kubectl plugin, and SHA256SUMS, in DIR (default: dist/release).
With ${SIGNING_KEY_VARIABLE}=FILE, an SSH key, also SHA256SUMS.sig. With ${RELEASE_URL_VARIABLE}=ADDRESS, that of the
directory that publishes these files, also krew's manifest.`

const { architectures, output } = parseReleaseOptions()
const { version } = await fs.readJson(join(ROOT, 'package.json'))
const sourceDateSeconds = await readSourceDate(ROOT, process.env.SOURCE_DATE_EPOCH)
const signingKey = process.env[SIGNING_KEY_VARIABLE] ?? ''
// Before all the work: what would be wrong with the key is said now.
if (signingKey !== '') await signChecksums(Buffer.alloc(0))
const releaseUrl = readReleaseUrl()
const releaseFiles: ReleaseFile[] = []
const releasedPrograms: ReleasedProgram[] = []
try {
  for (const arch of architectures) {
    const released = await createReleaseArchive(arch, version, sourceDateSeconds)
    releaseFiles.push(...released.files)
    releasedPrograms.push({ arch, program: released.program })
  }
  releaseFiles.push(...createReleaseImage(version, releasedPrograms, sourceDateSeconds))
  releaseFiles.push(...createReleaseChart(version, sourceDateSeconds))
  releaseFiles.push(...createReleaseKubectlPlugin(version, sourceDateSeconds, releaseUrl))
} catch (error) {
  createUnavailableExit('release')(error)
}
const checksumFile = { path: 'SHA256SUMS', bytes: Buffer.from(formatSha256Sums(releaseFiles)) }
const signatureFiles =
  signingKey === '' ? [] : [{ path: 'SHA256SUMS.sig', bytes: await signChecksums(checksumFile.bytes) }]
// Those of an earlier release would be wrong for these sums.
for (const name of ['SHA256SUMS.sig', KREW_MANIFEST_FILE]) await fs.remove(join(output, name))
for (const file of [...releaseFiles, checksumFile, ...signatureFiles]) {
  await fs.outputFile(join(output, `${file.path}.new`), file.bytes)
  await fs.rename(join(output, `${file.path}.new`), join(output, file.path))
  console.log(`${join(output, file.path)}: ${(file.bytes.length / 1e6).toFixed(1)} MB`)
}
if (signingKey === '') console.log(`not signed: ${SIGNING_KEY_VARIABLE} names no key`)
if (releaseUrl === undefined) console.log(`no ${KREW_MANIFEST_FILE}: ${RELEASE_URL_VARIABLE} has no address`)

function readReleaseUrl(): string | undefined {
  try {
    return parseReleaseUrl(process.env[RELEASE_URL_VARIABLE] ?? '')
  } catch (error) {
    console.error(`release: ${(error as Error).message}`)
    process.exit(1)
  }
}

function signChecksums(bytes: Buffer): Promise<Buffer> {
  return createSignature(bytes, signingKey).catch((error: Error) => {
    console.error(`release: ${error.message}`)
    process.exit(1)
  })
}

function parseReleaseOptions(): { architectures: readonly Architecture[]; output: string } {
  const { arch = ARCHITECTURES, output = join(ROOT, 'dist/release') } = parseReleaseArguments()
  const unknown = arch.filter((name) => !ARCHITECTURES.some((known) => known === name))
  if (unknown.length > 0) exitWithUsage(`--arch is ${unknown[0]}: use ${ARCHITECTURES.join(' or ')}`)
  return { architectures: ARCHITECTURES.filter((known) => arch.includes(known)), output: resolve(output) }
}

function parseReleaseArguments() {
  try {
    return parseArgs({ options: { arch: { type: 'string', multiple: true }, output: { type: 'string' } } }).values
  } catch (error) {
    return exitWithUsage((error as Error).message)
  }
}

function exitWithUsage(what: string): never {
  console.error(`release: ${what}\n${USAGE}`)
  process.exit(2)
}
