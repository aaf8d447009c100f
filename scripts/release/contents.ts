import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { execa } from 'execa'
import fs from 'fs-extra'
import type { TreeFile } from '../archive/tree.ts'
import { provideDebianFile } from '../fetch/debian.ts'
import { GCC_LICENCE_FILES } from '../fetch/pinned.ts'
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
const RELEASED_SCRIPTS = ['driver/kubernetes/kubectl-modekeep']

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
): Promise<TreeFile[]> {
  const files = await Promise.all(RELEASED_FILES.map((path) => readEntriesBelow(path, join(ROOT, path))))
  const printed = await Promise.all(
    Object.entries(PRINTED_FILES).map(([path, { args, form }]) => createPrintedEntry(path, args, form)),
  )
  return [
    { path: 'install.sh', bytes: await fs.readFile(join(ROOT, 'install.sh')), isProgram: true },
    { path: 'licenses/node.txt', bytes: await fs.readFile(nodeLicense) },
    { path: 'licenses/npm.txt', bytes: Buffer.from(packages.map(formatPackageLicense).join('\n')) },
    ...Object.entries(GCC_LICENCE_FILES).map(([name, pinned]) => ({
      path: `licenses/gcc/${name}`,
      bytes: fs.readFileSync(provideDebianFile(pinned)),
    })),
    ...files.flat(),
    ...printed,
  ]
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
