import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { circlesOf, importsOf, ROOT, roomOf, type Source, sourcesIn } from './sources.ts'

/** The rooms of src from top to bottom: each imports only from those below it. docs/architecture.md has the reasons. */
const ROOMS = [
  'metrics',
  'cli',
  'frontends',
  'migrate',
  'repair',
  'rpc',
  'container',
  'mount',
  'fsgroup',
  'volume',
  'worker',
  'state',
  'ownership',
  'config',
  'log',
  'kernel',
  'errors',
]

/** What a room imports besides rooms. A new package is a decision: it is made here and in docs/architecture.md. */
const PACKAGES: Readonly<Record<string, readonly string[]>> = {
  // The CSIDriver object is read over HTTPS.
  // A type of the thread that reads the node's files.
  frontends: [
    '@grpc/grpc-js',
    'node:crypto',
    'node:fs',
    'node:fs/promises',
    'node:https',
    'node:path',
    'node:timers/promises',
    'node:events',
    'node:net',
    'node:stream',
    'node:worker_threads',
  ],
  // Types of node:sqlite; the host opens databases.
  rpc: [
    '@bufbuild/protobuf',
    '@bufbuild/protobuf/wkt',
    '@grpc/grpc-js',
    'node:events',
    'node:fs',
    'node:net',
    'node:path',
    'node:stream',
  ],
  // Kubelet's file of a pod's ids.
  container: ['zod/mini'],
  // A type of the thread that waits for changes of the mount table.
  repair: ['node:events', 'node:path', 'node:timers/promises', 'node:worker_threads'],
  kernel: [
    // A type; execa starts children.
    'node:child_process',
    'execa',
    'node:crypto',
    'node:fs',
    'node:os',
    'node:path',
    'node:sqlite',
    'node:stream',
    'node:url',
    'node:util',
    // A call that walks little has nothing optimized.
    'node:v8',
  ],
  log: ['node:path'],
  // The health server.
  metrics: ['node:events', 'node:fs', 'node:http', 'node:net'],
  migrate: ['yaml'],
  mount: ['node:path'],
  cli: ['node:fs', 'node:path', 'node:timers/promises', 'node:util', 'yaml'],
  ownership: [
    // An ACL is found by a hash that pods cannot find others for.
    'node:crypto',
    // Checksums of whole batches.
    'node:zlib',
    // For types, as the host opens the database.
    'node:sqlite',
  ],
  config: ['node:fs', 'node:path', 'zod/mini'],
  state: ['node:crypto', 'zod/mini'],
  volume: ['node:path'],
}

const sources = sourcesIn('src', true)
const drivers = sourcesIn('driver', false)

describe('the parser of imports', () => {
  it('finds every form of import', () => {
    const text = [
      "import { a } from './a.ts'",
      "import type {\n  B,\n} from '../state/b.ts'",
      "export { c } from 'c'",
      "import 'd'",
      "const e = await import('./e.ts')",
      "const f = process.getBuiltinModule('node:f')",
    ].join('\n')
    expect(importsOf('src/mount/x.ts', text)).toEqual([
      'src/mount/a.ts',
      'src/state/b.ts',
      'c',
      'd',
      'src/mount/e.ts',
      'node:f',
    ])
  })

  it('reads the sources of every directory', () => {
    expect(sources.length).toBeGreaterThan(50)
    expect(drivers.map(({ path }) => path)).toContain('driver/main.ts')
    expect(sources.find(({ path }) => path === 'src/mount/mount.ts')?.imports).toContain('src/mount/plan.ts')
  })

  it('finds import circles', () => {
    const edges = new Map([
      ['a', ['b']],
      ['b', ['c']],
      ['c', ['b', 'd']],
      ['d', []],
    ])
    expect(circlesOf(edges)).toEqual(['b -> c'])
  })
})

describe('imports of the rooms in src', () => {
  it('the list of rooms has every folder of src', () => {
    expect([...new Set(sources.map(({ room }) => room))].sort()).toEqual([...ROOMS].sort())
  })

  it('the list of rooms equals the table in docs/architecture.md', () => {
    const page = readFileSync(join(ROOT, 'docs/architecture.md'), 'utf8')
    const table = page.slice(page.indexOf('| room | holds |'), page.indexOf('## Decisions'))
    expect([...table.matchAll(/^\| `([a-z-]+)` \|/gm)].map((row) => row[1])).toEqual(ROOMS)
  })

  it.each(sources.map((source) => [source.path, source] as const))(
    'src/%s imports only folders below it in the list, and the packages that it may use',
    (_path, { room, imports }) => {
      const below = ROOMS.slice(ROOMS.indexOf(room) + 1)
      const isAllowed = (name: string) =>
        name.startsWith('src/')
          ? roomOf(name) === room || below.includes(roomOf(name))
          : (PACKAGES[room] ?? []).includes(name)
      expect(imports.filter((name) => !isAllowed(name))).toEqual([])
    },
  )

  it('every package in the list is imported', () => {
    const used = new Set(sources.flatMap(({ room, imports }) => imports.map((name) => `${room} -> ${name}`)))
    const listed = Object.entries(PACKAGES).flatMap(([room, names]) => names.map((name) => `${room} -> ${name}`))
    expect(listed.filter((edge) => !used.has(edge))).toEqual([])
  })

  it('no files import each other in a circle', () => {
    expect(circlesOf(new Map(sources.map(({ path, imports }) => [path, imports])))).toEqual([])
  })

  it('no folders import each other in a circle', () => {
    const edges = new Map<string, string[]>()
    for (const { path, imports } of sources) {
      const folder = dirname(path)
      const others = imports.filter((name) => name.startsWith('src/')).map((name) => dirname(name))
      edges.set(folder, [...(edges.get(folder) ?? []), ...others.filter((other) => other !== folder)])
    }
    expect(circlesOf(edges)).toEqual([])
  })
})

describe('the only place that may', () => {
  const all: Source[] = [...sources, ...drivers]
  const mentioning = (word: RegExp) => all.filter(({ text }) => word.test(text)).map(({ path }) => path)

  it('load native code is the kernel module of src/kernel/linux', () => {
    expect(mentioning(/process\.dlopen|node:ffi/)).toEqual(['src/kernel/linux/kernel.ts'])
  })

  it('read the arguments are driver/main.ts, and driver/start.ts for the first one', () => {
    expect(mentioning(/process\.argv|\bargv0\b/)).toEqual(['driver/main.ts', 'driver/start.ts'])
  })

  it('read the environment is driver/, except for the descriptor that the loader passes on', () => {
    const outside = all.filter(({ path, text }) => !path.startsWith('driver/') && /process\.env/.test(text))
    expect(outside.map(({ path }) => path)).toEqual(['src/kernel/linux/kernel.ts'])
    expect(outside.flatMap(({ text }) => text.match(/process\.env(\.\w+)?/g))).toEqual(['process.env.MODEKEEP_KERNEL'])
    expect(mentioning(/process\.env/)).toContain('driver/main.ts')
  })

  it("write to kubelet's streams or end the process is driver/", () => {
    expect(
      sources.filter(({ text }) => /process\.(stdout|stderr|exit)|console\./.test(text)).map((s) => s.path),
    ).toEqual([])
  })

  it('no source file is longer than 250 lines', () => {
    expect(all.filter(({ text }) => text.split('\n').length - 1 > 250).map(({ path }) => path)).toEqual([])
  })
})
