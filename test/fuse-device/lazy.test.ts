import { resolve } from 'node:path'
import { build, type Metafile } from 'esbuild'
import { describe, expect, it } from 'vitest'

const ENTRY = 'driver/main.ts'

/** The sources that run before anything is imported dynamically, and those that may come later. */
async function sources(): Promise<{ first: string[]; later: string[] }> {
  const { metafile } = await build({
    entryPoints: [ENTRY],
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
  const start = outputs.find(([, { entryPoint }]) => entryPoint === ENTRY)?.[0] ?? ''
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
    const { first, later } = await sources()
    const ofPlugin = (paths: readonly string[]) => paths.filter((path) => /@grpc|fuse-device/.test(path))
    expect(first).toContain(ENTRY)
    expect(ofPlugin(first)).toEqual([])
    expect(ofPlugin(later).length).toBeGreaterThan(20)
  })
})
