import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build, type Metafile, type Plugin, transform } from 'esbuild'
import { execa } from 'execa'
import fs from 'fs-extra'
import { formatThreadAssetName, THREAD_ENTRY_NAMES } from '../../driver/process.ts'

const ROOT = join(import.meta.dirname, '../..')
const START_SCRIPT = 'start.cjs'
/** Also the name in stack traces, and the same in every checkout: the build must give the same bytes everywhere. */
const BUNDLE_FILE = 'modekeep.cjs'
const KUBELET_CALL_SCRIPT = 'kubelet-call.cjs'
const APPLICATION_BLOB_FILE = 'modekeep.blob'

const EXECUTABLE_NODE_OPTIONS = ['--openssl-config=/dev/null', '--disable-sigusr1']

/** String hashes are part of the code cache; V8 does not take this flag into account when it accepts one. */
const FIXED_RANDOM_SEED_FLAG = '--random-seed=1'

/** Scripts of their own: each kind of process reads and keeps only its own. */
const SEPARATE_SCRIPTS: ReadonlyMap<string, string> = new Map([
  [join(ROOT, 'driver/kubelet-call.ts'), KUBELET_CALL_SCRIPT],
  [join(ROOT, 'driver/operator.ts'), 'operator.cjs'],
  [join(ROOT, 'driver/csi-worker.ts'), 'csi-worker.cjs'],
  [join(ROOT, 'driver/nri-worker.ts'), 'nri-worker.cjs'],
  [join(ROOT, 'driver/isolated-worker.ts'), 'isolated-worker.cjs'],
  [join(ROOT, 'driver/migrate.ts'), 'migrate.cjs'],
  [fileURLToPath(import.meta.resolve('execa')), 'execa.cjs'],
])

/** What calls of kubelet and workers import dynamically; what only some of them need comes by other such imports. */
const USUAL_DYNAMIC_IMPORTS = [
  'src/config/read-config.ts',
  'driver/volume-call.ts',
  'src/config/config.ts',
  'src/mount/run.ts',
  'src/mount/unmount.ts',
  'src/mount/mount.ts',
  'src/fsgroup/walk-volume.ts',
]
/** What they evaluate too, of which they call little. */
const RARELY_CALLED_FILES = /^src\/volume\/(disk|nfs|cifs|fuse)/
/** An isolated worker makes a single call, and a pod waits for the first call of a CSI worker. */
const WORKERS_COMPILED_AHEAD: ReadonlySet<string> = new Set(['isolated-worker.cjs', 'csi-worker.cjs'])
const USED_BY_A_FIRST_CALL = /^src\/(fsgroup|kernel|mount|ownership)\//

const separateScriptsPlugin: Plugin = {
  name: 'scripts of their own',
  setup({ onResolve, resolve: find }) {
    onResolve(
      { filter: /^execa$|\/(kubelet-call|operator|csi-worker|nri-worker|isolated-worker|migrate)\.ts$/ },
      async ({ kind, path, resolveDir, pluginData }) => {
        const isOther = kind === 'dynamic-import' || path === 'execa'
        if (!isOther || pluginData === separateScriptsPlugin) return undefined
        const script = SEPARATE_SCRIPTS.get(
          (await find(path, { kind, resolveDir, pluginData: separateScriptsPlugin })).path,
        )
        return script === undefined ? undefined : { path: `./${script}`, external: true }
      },
    )
  },
}

interface BundleOptions {
  isMarked: boolean
  /** Of the C library that the executable carries. */
  glibcVersion?: string | undefined
  plugins: readonly Plugin[]
}

/** @returns the files that went into it, whose code is below a line of their own if it is `isMarked` */
async function bundleWithMetafile(
  entry: string,
  outfile: string,
  { isMarked, glibcVersion, plugins }: BundleOptions,
): Promise<Metafile['inputs']> {
  const { metafile } = await build({
    absWorkingDir: ROOT,
    entryPoints: [entry],
    outfile,
    metafile: true,
    bundle: true,
    platform: 'node',
    target: 'node26',
    format: 'cjs',
    minifyIdentifiers: true,
    minifySyntax: true,
    minifyWhitespace: !isMarked,
    legalComments: 'none',
    logLevel: 'warning',
    plugins: [separateScriptsPlugin, ...plugins],
    // Other scripts come by `require`.
    supported: { 'dynamic-import': false },
    // grpc-js asks for it where .proto files are read, which is not here.
    external: ['@grpc/proto-loader'],
    // Only a run from the sources needs it.
    define: { 'import.meta.url': '""', CARRIED_GLIBC_VERSION: JSON.stringify(glibcVersion ?? '') },
  })
  return metafile.inputs
}

/** @returns the files that went into it */
export async function bundleScript(entry: string, outfile: string): Promise<string[]> {
  return Object.keys(await bundleWithMetafile(entry, outfile, { isMarked: false, plugins: [] })).map((path) =>
    resolve(ROOT, path),
  )
}

/** The entries of what the executable runs, and what they are called in it. */
export function listBundleEntries(entry: string): { source: string; name: string }[] {
  const threads = THREAD_ENTRY_NAMES.map((thread) => ({
    source: join(ROOT, `driver/${thread}.ts`),
    name: formatThreadAssetName(thread),
  }))
  const scripts = [...SEPARATE_SCRIPTS].map(([source, name]) => ({ source, name }))
  return [
    { source: join(ROOT, 'driver/start.ts'), name: START_SCRIPT },
    { source: entry, name: BUNDLE_FILE },
    ...scripts,
    ...threads,
  ]
}

export interface ApplicationOptions {
  codeCache: boolean
  glibcVersion?: string | undefined
  plugins?: readonly Plugin[] | undefined
}

/**
 * TypeScript in, out comes what Node carries: scripts, their code caches and the options they are run with.
 * @param node runs on this machine, and is of the version that the application is for
 * @param plugins see the sources before others do: the benchmark's
 */
export async function prepareApplication(
  node: string,
  entry: string,
  workDirectory: string,
  { codeCache, glibcVersion, plugins = [] }: ApplicationOptions,
): Promise<Buffer> {
  const assets = THREAD_ENTRY_NAMES.map(formatThreadAssetName)
  const clean = { cwd: workDirectory, env: {}, extendEnv: false }
  for (const { source, name } of listBundleEntries(entry)) {
    const file = join(workDirectory, name)
    const isScript = name === BUNDLE_FILE || SEPARATE_SCRIPTS.has(source)
    const inputs = await bundleWithMetafile(source, file, { isMarked: isScript, glibcVersion, plugins })
    if (!isScript) continue
    const ahead = await wrapBundle(file, inputs, findFilesToCompile(name, inputs, source))
    const cache = `${name}.cache`
    if (codeCache) {
      await execa(
        node,
        [FIXED_RANDOM_SEED_FLAG, join(import.meta.dirname, 'code-cache.ts'), name, cache, ...ahead],
        clean,
      )
    } else await fs.writeFile(join(workDirectory, cache), '')
    assets.push(name, cache)
  }
  await fs.writeJson(join(workDirectory, 'sea.json'), {
    main: START_SCRIPT,
    output: APPLICATION_BLOB_FILE,
    disableExperimentalSEAWarning: true,
    useCodeCache: codeCache,
    execArgvExtension: 'none',
    execArgv: EXECUTABLE_NODE_OPTIONS,
    assets: Object.fromEntries(assets.map((asset) => [asset, asset])),
  })
  await execa(node, [FIXED_RANDOM_SEED_FLAG, '--experimental-sea-config', 'sea.json'], clean)
  return fs.readFile(join(workDirectory, APPLICATION_BLOB_FILE))
}

/**
 * Makes of a bundle the function that start.ts calls, in few bytes: the text does not say where the files lay.
 * @returns the lines of the files that are wanted, `from-to`
 */
async function wrapBundle(bundle: string, inputs: Metafile['inputs'], wanted: ReadonlySet<string>): Promise<string[]> {
  let part = { file: '', code: '' }
  const parts = [part]
  for (const line of (await fs.readFile(bundle, 'utf8')).split('\n')) {
    const file = line.startsWith('// ') ? line.slice(3) : ''
    if (file in inputs) {
      part = { file, code: '' }
      parts.push(part)
    } else part.code += `${line}\n`
  }
  const ahead: string[] = []
  let text = '(function(exports,require,module){'
  let lines = 0
  for (const { file, code } of parts) {
    const compact = (await transform(code, { minifyWhitespace: true, target: 'node26', legalComments: 'none' })).code
    assertAsciiCode(file, compact)
    const next = lines + compact.split('\n').length - 1
    if (wanted.has(file)) ahead.push(`${lines}-${next}`)
    text += compact
    lines = next
  }
  await fs.writeFile(bundle, `${text}})`)
  return ahead
}

/**
 * The executable reads its scripts byte by byte. esbuild escapes what is more than one, but not in regular expressions and
 * raw templates, where an escape may mean something else.
 */
function assertAsciiCode(file: string, code: string): void {
  const [letter] = /\P{ASCII}/u.exec(code) ?? []
  if (letter === undefined) return
  const place = 'in a regular expression or a raw template, which the executable would read as other letters'
  throw new Error(
    `${file} has "${letter}" ${place}: write it as \\u{${letter.codePointAt(0)?.toString(16)}} or in a string`,
  )
}

/** The files of a script whose functions are compiled at build time. A worker's libraries would take more room than time. */
function findFilesToCompile(name: string, inputs: Metafile['inputs'], entry: string): Set<string> {
  if (name === BUNDLE_FILE || name === KUBELET_CALL_SCRIPT) return findUsualFiles(inputs, entry)
  if (!WORKERS_COMPILED_AHEAD.has(name)) return new Set()
  return new Set([...findUsualFiles(inputs, entry)].filter((path) => USED_BY_A_FIRST_CALL.test(path)))
}

/** The files that each call of kubelet evaluates. */
function findUsualFiles(inputs: Metafile['inputs'], entry: string): Set<string> {
  const found = new Set<string>()
  const add = (path: string) => {
    if (found.has(path) || RARELY_CALLED_FILES.test(path)) return
    found.add(path)
    for (const { path: imported, kind } of inputs[path]?.imports ?? []) {
      if (inputs[imported] && (kind !== 'dynamic-import' || USUAL_DYNAMIC_IMPORTS.includes(imported))) add(imported)
    }
  }
  for (const path of Object.keys(inputs)) if (resolve(ROOT, path) === entry) add(path)
  return found
}
