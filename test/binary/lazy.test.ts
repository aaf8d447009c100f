import { resolve } from 'node:path'
import { build, type Metafile } from 'esbuild'
import { describe, expect, it } from 'vitest'

const ENTRY = 'driver/main.ts'
const MOUNT = 'driver/volume-call.ts'

/** The sources that run before anything is imported dynamically, and those that may come later. */
async function sources(entry: string): Promise<{ first: string[]; later: string[] }> {
  const { metafile } = await build({
    entryPoints: [entry],
    absWorkingDir: resolve(import.meta.dirname, '../..'),
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

describe('a call of kubelet to mount a volume', () => {
  it('does not pay for the device plugin: it is evaluated for its own verb only', async () => {
    const { first, later } = await sources(ENTRY)
    const ofPlugin = (paths: readonly string[]) => paths.filter((path) => /@grpc|fuse-device/.test(path))
    expect(first).toContain(ENTRY)
    expect(ofPlugin(first)).toEqual([])
    expect(ofPlugin(later).length).toBeGreaterThan(20)
  })

  it('does not pay for helper programs: what runs them is evaluated for kinds of volume that need one', async () => {
    const { first, later } = await sources(MOUNT)
    const ofHelpers = (paths: readonly string[]) =>
      paths.filter((path) => /node_modules\/execa|linux\/helper/.test(path))
    expect(first).toContain(MOUNT)
    expect(ofHelpers(first)).toEqual([])
    expect(ofHelpers(later).length).toBeGreaterThan(20)
  })
})
