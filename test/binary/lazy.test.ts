import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { resolve } from 'node:path'
import { Script } from 'node:vm'
import { build, type Metafile } from 'esbuild'
import { describe, expect, it } from 'vitest'
import { bundleScript, prepareApplication } from '../../scripts/build/application.ts'

const ROOT = resolve(import.meta.dirname, '../..')
const ENTRY = 'driver/main.ts'
const KUBELET_CALL = 'driver/kubelet-call.ts'
const MOUNT = 'driver/volume-call.ts'

/** The sources that run before anything is imported dynamically, and those that may come later. */
async function sources(entry: string): Promise<{ first: string[]; later: string[] }> {
  const { metafile } = await build({
    entryPoints: [entry],
    absWorkingDir: ROOT,
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    metafile: true,
    write: false,
    outdir: 'dist',
    logLevel: 'silent',
  })
  const outputs = Object.entries(metafile.outputs)
  const start = outputs.find(([, { entryPoint }]) => entryPoint === entry)?.[0] ?? ''
  const first = [...reached(metafile, start, new Set())]
  const inputs = (names: readonly string[]) =>
    names.flatMap((name) => Object.keys(metafile.outputs[name]?.inputs ?? {}))
  return { first: inputs(first), later: inputs(outputs.map(([name]) => name).filter((name) => !first.includes(name))) }
}

function reached(metafile: Metafile, output: string, seen: Set<string>): Set<string> {
  if (seen.has(output)) return seen
  seen.add(output)
  for (const { path, kind } of metafile.outputs[output]?.imports ?? []) {
    if (kind === 'import-statement') reached(metafile, path, seen)
  }
  return seen
}

describe("kubelet's mount call", () => {
  it("loads the device plugin's code only for its own verb", async () => {
    const { first, later } = await sources(ENTRY)
    const ofPlugin = (paths: readonly string[]) => paths.filter((path) => /@grpc|fuse-device/.test(path))
    expect(first).toContain(ENTRY)
    expect(ofPlugin(first)).toEqual([])
    expect(ofPlugin(later).length).toBeGreaterThan(20)
  })

  it('loads the code of helper programs only for volume types that need one', async () => {
    const { first, later } = await sources(MOUNT)
    const ofHelpers = (paths: readonly string[]) =>
      paths.filter((path) => /node_modules\/execa|linux\/helper/.test(path))
    expect(first).toContain(MOUNT)
    expect(ofHelpers(first)).toEqual([])
    expect(ofHelpers(later).length).toBeGreaterThan(20)
  })

  it('loads the steps of a mount and the unmount only if they are needed', async () => {
    const { first, later } = await sources(MOUNT)
    const rare = [
      'src/mount/run.ts',
      'src/mount/unmount.ts',
      'src/fsgroup/apply-group-step.ts',
      'src/ownership/walks.ts',
    ]
    expect(first).toContain('src/mount/mount.ts')
    expect(first.filter((path) => rare.includes(path))).toEqual([])
    expect(later).toEqual(expect.arrayContaining(rare))
  })

  it("imports Node's modules only by names, because other imports copy the whole module", async () => {
    const { first } = await sources(MOUNT)
    const own = first.filter((path) => path.startsWith('src/') || path.startsWith('driver/'))
    const copying = own.filter((path) =>
      /^import (\* as )?\w+ from 'node:/m.test(fs.readFileSync(`${ROOT}/${path}`, 'utf8')),
    )
    expect(own.length).toBeGreaterThan(50)
    expect(copying).toEqual([])
  })
})

it("kubelet's calls, commands, workers and helper programs have a script each, and the first script loads the one that it needs", async () => {
  const work = fs.mkdtempSync(`${tmpdir()}/modekeep-lazy-`)
  const bundle = async (entry: string) => {
    const files = await bundleScript(resolve(ROOT, entry), `${work}/bundle.cjs`)
    return { files, text: fs.readFileSync(`${work}/bundle.cjs`, 'utf8') }
  }
  try {
    const first = await bundle(ENTRY)
    for (const script of ['kubelet-call', 'operator', 'csi-worker', 'nri-worker', 'isolated-worker'])
      expect(first.text).toContain(`"./${script}.cjs"`)
    expect(first.files.filter((path) => /node_modules|src\/(mount|state|config)/.test(path))).toEqual([])
    const call = await bundle(KUBELET_CALL)
    expect(call.files).toContain(resolve(ROOT, MOUNT))
    expect(
      call.files.filter((path) => /src\/(cli|repair|frontends\/(csi|nri))|node_modules\/(execa|@grpc)/.test(path)),
    ).toEqual([])
    expect(call.text).toContain('"./execa.cjs"')
  } finally {
    fs.rmSync(work, { recursive: true })
  }
})

describe('the code cache of the executable', () => {
  it('is accepted by V8, and contains functions that were not called yet', async () => {
    const work = fs.mkdtempSync(`${tmpdir()}/modekeep-cache-`)
    try {
      const node = process.execPath
      await prepareApplication(node, resolve(ROOT, ENTRY), work, { codeCache: true })
      for (const name of [
        'modekeep.cjs',
        'kubelet-call.cjs',
        'operator.cjs',
        'csi-worker.cjs',
        'nri-worker.cjs',
        'isolated-worker.cjs',
        'execa.cjs',
      ]) {
        const script = new Script(fs.readFileSync(`${work}/${name}`, 'latin1'), {
          filename: name,
          cachedData: fs.readFileSync(`${work}/${name}.cache`),
        })
        expect([name, script.cachedDataRejected]).toEqual([name, false])
      }
      const size = (name: string) => fs.statSync(`${work}/${name}`).size
      expect(size('kubelet-call.cjs.cache')).toBeGreaterThan(2 * size('kubelet-call.cjs'))
    } finally {
      fs.rmSync(work, { recursive: true })
    }
  })
})
