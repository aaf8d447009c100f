import { join } from 'node:path'
import { build } from 'esbuild'
import { execa } from 'execa'
import fs from 'fs-extra'
import { assetOf, THREADS } from '../../driver/thread.ts'

/** Also the name in stack traces, and the same in every checkout: the build must give the same bytes everywhere. */
const BUNDLE = 'modekeep.cjs'
const BLOB = 'modekeep.blob'

const EXEC_ARGV = ['--disable-warning=ExperimentalWarning', '--openssl-config=/dev/null', '--disable-sigusr1']

/** String hashes are part of the code cache; V8 does not take this flag into account when it accepts one. */
const SAME_BYTES = '--random-seed=1'

async function bundle(entry: string, outfile: string): Promise<void> {
  await build({
    entryPoints: [entry],
    outfile,
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
}

/** TypeScript in, out comes what Node carries: one script, its code cache and the options it is run with. */
export async function prepareApplication(node: string, entry: string, workDirectory: string): Promise<Buffer> {
  await bundle(entry, join(workDirectory, BUNDLE))
  for (const thread of THREADS)
    await bundle(join(import.meta.dirname, `../../driver/${thread}.ts`), join(workDirectory, assetOf(thread)))
  await fs.writeJson(join(workDirectory, 'sea.json'), {
    main: BUNDLE,
    output: BLOB,
    disableExperimentalSEAWarning: true,
    useCodeCache: true,
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
