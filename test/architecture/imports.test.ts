import { readdirSync, readFileSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import { describe, expect, it } from 'vitest'

const ROOT = resolve(import.meta.dirname, '../..')

/** Folder of src -> the folders and packages it may import. A new edge is a decision: it is made here. */
const ALLOWED: Readonly<Record<string, readonly string[]>> = {
  protocol: ['zod/mini'],
  'mount-table': [],
  // protocol for Refusal alone: what a helper program said is a sentence for people.
  host: ['node:fs', 'node:path', 'node:sqlite', 'protocol'],
  'host/linux': [
    'execa',
    'host',
    'node:ffi',
    'node:fs',
    'node:sqlite',
    'node:stream',
    'node:timers/promises',
    'node:util',
  ],
  'host/memory': ['host', 'memfs', 'node:sqlite'],
  state: ['host', 'node:crypto', 'protocol', 'zod/mini'],
  // The forms of records, which are data; nothing is read or written.
  plan: ['protocol', 'mount-table', 'state'],
  log: ['protocol', 'node:fs', 'node:path'],
  // node:sqlite and node:worker_threads for their types: the host opens the database, the driver starts threads.
  ownership: ['host', 'protocol', 'node:sqlite', 'node:worker_threads'],
  path: ['host', 'protocol'],
  filesystem: ['host', 'path', 'protocol', 'mount-table'],
  apply: ['filesystem', 'host', 'mount-table', 'ownership', 'path', 'plan', 'protocol', 'state', 'node:path'],
  'fuse-device': ['@grpc/grpc-js', 'node:fs', 'node:fs/promises', 'node:net', 'node:path', 'node:stream', 'node:util'],
  metrics: ['apply', 'log', 'operator', 'ownership', 'protocol', 'state', 'node:fs', 'node:path'],
  operator: ['apply', 'host', 'mount-table', 'ownership', 'protocol', 'state', 'node:path', 'node:util'],
}

interface Source {
  path: string
  folder: string
  text: string
  imports: string[]
}

function folderOf(path: string): string {
  const [, first = '', second = ''] = path.split('/')
  return first === 'host' && second !== '' && !second.endsWith('.ts') ? `host/${second}` : first
}

function sourcesIn(folder: string, recursive: boolean): Source[] {
  const names = readdirSync(join(ROOT, folder), { recursive, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'))
  return names.map((name) => {
    const path = `${folder}/${name}`
    const text = readFileSync(join(ROOT, path), 'utf8')
    return { path, folder: folderOf(path), text, imports: importsOf(path, text) }
  })
}

const IMPORT =
  /^\s*(?:import|export)\b[^'"`;]*?from\s*['"]([^'"]+)['"]|^\s*import\s*['"]([^'"]+)['"]|\b(?:import|require|getBuiltinModule)\(\s*['"]([^'"]+)['"]/gm

/** What a file imports: paths from the root, or names of packages. */
function importsOf(path: string, text: string): string[] {
  return [...text.matchAll(IMPORT)].map((match) => {
    const name = match[1] ?? match[2] ?? match[3] ?? ''
    return name.startsWith('.') ? relative(ROOT, resolve(ROOT, path, '..', name)) : name
  })
}

const sources = sourcesIn('src', true)
const drivers = sourcesIn('driver', false)

describe('the reader of imports', () => {
  it('sees every form there is', () => {
    const text = [
      "import { a } from './a.ts'",
      "import type {\n  B,\n} from '../state/b.ts'",
      "export { c } from 'c'",
      "import 'd'",
      "const e = await import('./e.ts')",
      "const f = process.getBuiltinModule('node:f')",
    ].join('\n')
    expect(importsOf('src/apply/x.ts', text)).toEqual([
      'src/apply/a.ts',
      'src/state/b.ts',
      'c',
      'd',
      'src/apply/e.ts',
      'node:f',
    ])
  })

  it('has found the sources', () => {
    expect(sources.length).toBeGreaterThan(50)
    expect(drivers.map(({ path }) => path)).toContain('driver/main.ts')
    expect(sources.find(({ path }) => path === 'src/apply/mount.ts')?.imports).toContain('src/plan/mount.ts')
  })
})

describe('imports go one way', () => {
  it.each(sources.map((source) => [source.path, source] as const))('%s', (_path, { folder, imports }) => {
    const allowed = ALLOWED[folder]
    expect(allowed, `src/${folder} has no line in the table of this test`).toBeDefined()
    const targets = imports.map((name) => (name.startsWith('src/') ? folderOf(name) : name))
    expect(targets.filter((target) => target !== folder && !allowed?.includes(target))).toEqual([])
  })

  it('in a table without a circle', () => {
    const below = (folder: string, path: readonly string[]): string[] =>
      path.includes(folder)
        ? [[...path, folder].join(' -> ')]
        : (ALLOWED[folder] ?? []).filter((to) => to in ALLOWED).flatMap((to) => below(to, [...path, folder]))
    expect(Object.keys(ALLOWED).flatMap((folder) => below(folder, []))).toEqual([])
  })

  it('and every edge of the table is in use', () => {
    const used = new Set(
      sources.flatMap(({ folder, imports }) =>
        imports.map((name) => `${folder} -> ${name.startsWith('src/') ? folderOf(name) : name}`),
      ),
    )
    const edges = Object.entries(ALLOWED).flatMap(([from, tos]) => tos.map((to) => `${from} -> ${to}`))
    expect(edges.filter((edge) => !used.has(edge))).toEqual([])
  })
})

describe('what only one place may do', () => {
  const all = [...sources, ...drivers]
  const mentioning = (word: RegExp) => all.filter(({ text }) => word.test(text)).map(({ path }) => path)

  it('calling C is for the one module of src/host/linux', () => {
    const using = all.filter(({ imports }) => imports.includes('node:ffi'))
    expect(using.map(({ path }) => path)).toEqual(['src/host/linux/libc.ts'])
  })

  it('reading the arguments is for driver/main.ts', () => {
    expect(mentioning(/process\.argv|\bargv0\b/)).toEqual(['driver/main.ts'])
  })

  it('reading the environment is for the driver', () => {
    expect(mentioning(/process\.env/).filter((path) => !path.startsWith('driver/'))).toEqual([])
    expect(mentioning(/process\.env/)).toContain('driver/main.ts')
  })

  it("writing to kubelet's streams or ending the process is for the driver", () => {
    expect(
      sources.filter(({ text }) => /process\.(stdout|stderr|exit)|console\./.test(text)).map((s) => s.path),
    ).toEqual([])
  })

  it('nobody writes more than 200 lines in a file', () => {
    expect(all.filter(({ text }) => text.split('\n').length - 1 > 200).map(({ path }) => path)).toEqual([])
  })
})
