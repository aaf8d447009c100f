import { join, resolve } from 'node:path'
import { build } from 'esbuild'
import { execa } from 'execa'
import fs from 'fs-extra'
import { assetOf, THREADS } from '../../driver/thread.ts'

/** Also the name in stack traces, and the same in every checkout: the build must give the same bytes everywhere. */
const BUNDLE = 'modekeep.cjs'
const BLOB = 'modekeep.blob'

const EXEC_ARGV = ['--openssl-config=/dev/null', '--disable-sigusr1']

/** String hashes are part of the code cache; V8 does not take this flag into account when it accepts one. */
const SAME_BYTES = '--random-seed=1'

/** @returns the files that went into it */
export async function bundle(entry: string, outfile: string): Promise<string[]> {
  const { metafile } = await build({
    entryPoints: [entry],
    outfile,
    metafile: true,
    bundle: true,
    platform: 'node',
    target: 'node26',
    format: 'cjs',
    minify: true,
    legalComments: 'none',
    logLevel: 'warning',
    // grpc-js asks for it where .proto files are read, which is not here.
    external: ['@grpc/proto-loader'],
    // Only a run from the sources needs it.
    define: { 'import.meta.url': '""' },
  })
  return Object.keys(metafile.inputs).map((path) => resolve(path))
}

/** The entries of what the executable runs, and what they are called in it. */
export function entriesOf(entry: string): { source: string; name: string }[] {
  const threads = THREADS.map((thread) => ({
    source: join(import.meta.dirname, `../../driver/${thread}.ts`),
    name: assetOf(thread),
  }))
  return [{ source: entry, name: BUNDLE }, ...threads]
}

/**
 * TypeScript in, out comes what Node carries: one script, its code cache and the options it is run with.
 * @param node runs on this machine, and is of the version that the application is for
 */
export async function prepareApplication(
  node: string,
  entry: string,
  workDirectory: string,
  { codeCache }: { codeCache: boolean },
): Promise<Buffer> {
  for (const { source, name } of entriesOf(entry)) await bundle(source, join(workDirectory, name))
  await fs.writeJson(join(workDirectory, 'sea.json'), {
    main: BUNDLE,
    output: BLOB,
    disableExperimentalSEAWarning: true,
    useCodeCache: codeCache,
    execArgvExtension: 'none',
    execArgv: EXEC_ARGV,
    assets: Object.fromEntries(THREADS.map(assetOf).map((asset) => [asset, asset])),
  })
  await execa(node, [SAME_BYTES, '--experimental-sea-config', 'sea.json'], {
    cwd: workDirectory,
    env: {},
    extendEnv: false,
  })
  return fs.readFile(join(workDirectory, BLOB))
}
