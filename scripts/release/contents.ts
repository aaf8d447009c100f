import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { execa } from 'execa'
import fs from 'fs-extra'
import type { TreeFile } from '../archive/tree.ts'
import { createChartFiles } from '../chart/files.ts'
import { provideDebianFile } from '../fetch/debian.ts'
import { GCC_LICENCE_FILES, GLIBC_LICENCE_FILES, type PinnedFile } from '../fetch/pinned.ts'
import type { BundledPackage } from './bundled.ts'

const ROOT = join(import.meta.dirname, '../..')

/** At the places that they have in the sources, so that what the pages name and link to is there; directories are taken whole. */
const RELEASED_FILES = [
  'README.md',
  'CHANGELOG.md',
  'LICENSE',
  'SECURITY.md',
  'docs',
  'driver/kubernetes',
  'driver/observability',
  'driver/apparmor',
  'driver/config.example.json',
  'driver/kernel/README.md',
  'driver/loader/README.md',
]

/** Of these, what is run where it lies. */
const RELEASED_SCRIPTS = ['driver/kubernetes/kubectl-modekeep', 'driver/kubernetes/kubectl_complete-modekeep']

/** Path in the archive -> the arguments with which modekeep prints it, and what it then looks like. */
const PRINTED_FILES: Readonly<Record<string, { args: readonly string[]; form: RegExp }>> = {
  'completions/modekeep.bash': { args: ['completion', 'bash'], form: /^complete .*modekeep$/m },
  'completions/_modekeep': { args: ['completion', 'zsh'], form: /^#compdef modekeep\n/ },
  'completions/modekeep.fish': { args: ['completion', 'fish'], form: /^complete -c modekeep -f$/m },
  'man/modekeep.8': { args: ['help', '--man'], form: /^\.TH MODEKEEP 8 / },
}

/** What every archive has beside the executable and its bill of materials. */
export async function createCommonEntries(
  nodeLicense: string,
  packages: readonly BundledPackage[],
  glibcVersion: string,
): Promise<TreeFile[]> {
  const files = await Promise.all(RELEASED_FILES.map((path) => readEntriesBelow(path, join(ROOT, path))))
  const printed = await Promise.all(
    Object.entries(PRINTED_FILES).map(([path, { args, form }]) => createPrintedEntry(path, args, form)),
  )
  return [
    { path: 'install.sh', bytes: await fs.readFile(join(ROOT, 'install.sh')), isProgram: true },
    { path: 'licenses/node.txt', bytes: await fs.readFile(nodeLicense) },
    { path: 'licenses/npm.txt', bytes: Buffer.from(packages.map(formatPackageLicense).join('\n')) },
    ...createLicenceEntries('licenses/gcc', GCC_LICENCE_FILES),
    ...createLicenceEntries('licenses/glibc', GLIBC_LICENCE_FILES),
    { path: 'licenses/glibc/CHANGES', bytes: Buffer.from(formatGlibcChanges(glibcVersion)) },
    ...files.flat(),
    ...createChartFiles().map((file) => ({ ...file, path: `driver/helm/modekeep/${file.path}` })),
    ...printed,
  ]
}

function createLicenceEntries(directory: string, files: Readonly<Record<string, PinnedFile>>): TreeFile[] {
  return Object.entries(files).map(([name, pinned]) => ({
    path: `${directory}/${name}`,
    bytes: fs.readFileSync(provideDebianFile(pinned)),
  }))
}

/** The notices that the LGPL 2.1 asks for: what was changed (section 2), the source (4), and how to use another library (6). */
function formatGlibcChanges(version: string): string {
  return `The executable of modekeep contains libc.so.6, libm.so.6, libpthread.so.0, libdl.so.2 and ld.so of
the GNU C Library (glibc), from Debian's package libc6 ${version}, under the GNU Lesser
General Public License 2.1 or later (LGPL-2.1).

Changed: in ld.so the build of modekeep replaces the paths /etc/ld.so.preload and /etc/ld.so.cache by
empty strings, and the letters of the system library directories by "-" (hideNodeLibraries in
scripts/build/interpreter.ts of modekeep's sources). The other files are as Debian published them.

Source: Debian's source package glibc ${version}, in the archive of Debian and published with
this release.

Another glibc: in modekeep's sources, replace the addresses and sums of GLIBC_* in
scripts/fetch/pinned.ts, or the files in the cache and their sums, and run "npm run build".
`
}

async function readEntriesBelow(path: string, source: string): Promise<TreeFile[]> {
  if (!(await fs.stat(source)).isDirectory()) {
    return [{ path, bytes: await fs.readFile(source), ...(RELEASED_SCRIPTS.includes(path) && { isProgram: true }) }]
  }
  const names = await fs.readdir(source)
  return (await Promise.all(names.map((name) => readEntriesBelow(`${path}/${name}`, join(source, name))))).flat()
}

/** @throws {Error} where modekeep prints something else: an unknown command answers as to kubelet. */
async function createPrintedEntry(path: string, args: readonly string[], form: RegExp): Promise<TreeFile> {
  const program = [join(ROOT, 'driver/main.ts')]
  const { stdout, failed } = await execa(process.execPath, [...program, ...args], {
    reject: false,
    stripFinalNewline: false,
  })
  if (failed || !form.test(stdout)) throw new Error(`"modekeep ${args.join(' ')}" does not print what ${path} is`)
  return { path, bytes: Buffer.from(stdout) }
}

function formatPackageLicense({ name, version, license, licenseText }: BundledPackage): string {
  return `${'='.repeat(80)}\n${name} ${version} (${license})\n${'='.repeat(80)}\n\n${licenseText ?? 'It comes without a text.'}\n`
}

/** The form that sha256sum(1) writes and checks. */
export function formatSha256Sums(files: readonly Pick<TreeFile, 'path' | 'bytes'>[]): string {
  return files
    .map(({ path, bytes }) => `${createHash('sha256').update(bytes).digest('hex')}  ${path}\n`)
    .sort((one, other) => (one.slice(66) < other.slice(66) ? -1 : 1))
    .join('')
}
