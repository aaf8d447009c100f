import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { type CommandDocument, getVerbOfCommand } from '../../../src/cli/commands/index.ts'
import { formatLogEntry } from '../../../src/cli/commands/logs.ts'
import { statusVerb } from '../../../src/cli/commands/status.ts'
import type { MountStatus, StatusDocument, VolumeStatus } from '../../../src/cli/commands/status-document.ts'
import { foldLine, formatJsonDocument, formatOutputLines } from '../../../src/cli/output/output.ts'
import { formatTerminalScreen } from '../../../src/cli/output/progress.ts'
import { formatYamlDocument } from '../../../src/cli/output/yaml.ts'

const WIDTHS = [60, 80, 200]
const UID = '0b0ba6c6-8d0f-4f1c-9f39-6a1f0e3b8c55'
const DIRECTORY = `/var/lib/kubelet/pods/${UID}/volumes/modekeep~fs/data`
const FILE_SYSTEM = 'ef53.b83afe7a1d37922f'
const LONG =
  'it is another volume now: its source was replaced; "modekeep heal" mounts it again, and its pod keeps its data'

const mount: MountStatus = {
  directory: DIRECTORY,
  volume: `${FILE_SYSTEM}-21a0ad-18ea325e026cf9cc`,
  pod: 'production-shop/cart-7c9f7d5d6-x2x9z',
  source: '/srv/volumes/production/data-of-the-shopping-cart',
  fsType: 'bind',
  readOnly: false,
  group: 2_000_000_000,
  ownership: 'option',
  why: 'the file system has no groups, so its options give it',
  since: '2026-01-01T00:00:00Z',
  state: 'interrupted',
  reason: LONG,
  code: null,
  repair: 'mounted',
  walk: { pid: 1234567, visited: 12_345_678, changed: 12_345_678 },
  unenforced: [],
  hiddenSubmounts: { count: 12_345_678, examples: ['/srv/volumes/production/disk', '/srv/volumes/tmp'] },
  daemon: { pid: null, state: 'dead' },
}
const volume: VolumeStatus = {
  volume: mount.volume,
  source: mount.source,
  group: 2_000_000_000,
  groupAccess: 'keep',
  complete: true,
  left: null,
  restorePending: true,
  mounts: 0,
  fault: LONG,
  name: null,
  changed: null,
  skipped: null,
  walk: null,
}
const whole: StatusDocument = {
  verb: 'status',
  mounts: [mount, { ...mount, pod: 'a/b', source: '/srv/a', state: 'healthy' }],
  volumes: [volume, { ...volume, volume: `${FILE_SYSTEM}-21a0ae-18ea325e026cf9cd` }],
  containers: [
    {
      container: 'c'.repeat(64),
      name: 'application',
      pod: 'production/shopping-cart-0',
      volume: 'pvc-0b0ba6c6-8d0f-4f1c-9f39-6a1f0e3b8c55',
      destination: DIRECTORY,
      source: DIRECTORY,
      onDisk: 4_294_967_294,
      isMember: null,
      group: 4_294_967_294,
      state: 'without',
      reason: LONG,
      since: new Date(0).toISOString(),
    },
  ],
  unrecorded: [{ directory: DIRECTORY, reason: LONG }],
  unreadable: [{ directory: DIRECTORY, fault: LONG }],
}
const report = {
  visited: 12_345_678,
  changed: 1_234_567,
  alreadyRight: 7,
  left: {
    'changed since by its user': { count: 12, examples: ['one/two/three', 'four/five/six', 'seven/eight/nine'] },
  },
}
const difference = {
  path: 'a/b/c',
  type: 'file',
  uid: 1000,
  before: { gid: 1000, mode: 0o644 },
  after: { gid: 2_000_000, mode: 0o664 },
  kubelet: { gid: 2_000_000, mode: 0o664 },
} as const
const recorded = { group: 2000, groupAccess: 'keep', complete: false, left: null, restorePending: true } as const
const about = { directory: '/srv/data', volume: mount.volume, group: 2000, groupAccess: 'keep' } as const

/** One of each verb that has something to tell, with all that it may tell. */
const DOCUMENTS: CommandDocument[] = [
  whole,
  {
    verb: 'plan',
    ...about,
    policy: 'OnRootMismatch',
    walks: false,
    refusal: LONG,
    busy: true,
    underWay: { visited: 12_345_678, changed: 12_345_678 },
    recorded,
    report,
    widened: 3,
    kubelet: { walks: false, touched: 12_345_678, changed: 12_345_678, widened: 12_345_678 },
    submounts: { count: 12_345_678, examples: ['/srv/volumes/production/disk'] },
    differences: [difference],
  },
  { verb: 'apply', ...about, policy: 'Always', walked: true, report },
  {
    verb: 'restore',
    directory: '/srv/data',
    volume: mount.volume,
    isDry: true,
    isForced: false,
    outcome: 'would restore',
    next: null,
    refusal: LONG,
    otherDisk: LONG,
    report,
    differences: [{ ...difference, kubelet: null }],
  },
  {
    verb: 'journal',
    action: 'import',
    file: '/root/data.journal',
    volume: mount.volume,
    source: '/srv/data',
    isDry: true,
    outcome: 'would import',
    refusal: LONG,
    recorded,
    busy: true,
    bytes: 123_456_789,
  },
  {
    verb: 'heal',
    isDry: true,
    mounts: [{ directory: '/a/b', pod: 'a/b', state: 'stale', action: 'replaced', reason: LONG }],
    subPaths: [{ mountPoint: '/c/d', source: '/e/f', action: 'replaced', reason: LONG }],
    containers: [
      {
        ...{ container: 'c0ffee', name: 'app', pod: 'a/b', volume: 'data', group: 2000 },
        ...{ state: 'without', action: 'none', reason: LONG, remedy: LONG },
      },
    ],
  },
  {
    verb: 'doctor',
    ok: 1,
    warnings: 1,
    faults: 1,
    findings: [
      { area: 'kernel', level: 'ok', text: LONG, remedy: '' },
      { area: 'state', level: 'fault', text: LONG, remedy: LONG },
    ],
  },
  {
    verb: 'gc',
    isDry: true,
    items: [
      { kind: 'mount record', name: '/a/b', action: 'failed', reason: LONG },
      ...['x', 'y', 'z', 'u'].map((name) => ({ kind: 'volume', name, action: 'kept', reason: LONG }) as const),
    ],
  },
]

/** Lines that are longer than the terminal though they have a blank to be broken at. */
const tooLong = (text: string, width: number) =>
  text.split('\n').filter((line) => line.length > width && /\S \S/.test(line.replaceAll(/"[^"]*"/g, 'quoted')))

describe.each(WIDTHS)('on a terminal of %i columns', (width) => {
  it.each(DOCUMENTS.map((document) => [document.verb, document] as const))(
    'the text of %s fits the terminal',
    (_, document) => {
      const text = formatOutputLines(getVerbOfCommand(document).lines(document, { width }), false, width)
      expect(text.split('\n').length).toBeGreaterThan(2)
      expect(tooLong(text, width)).toEqual([])
    },
  )

  it('the tables of status fit the terminal even with long values', () => {
    const lines = formatOutputLines(
      statusVerb.lines({ ...whole, unrecorded: [], unreadable: [] }, { width }),
      false,
      width,
    ).split('\n')
    expect(lines.filter((line) => line.length > width)).toEqual([])
  })

  it('the lines of the log fit the terminal', () => {
    const entry = {
      time: '2026-01-01T00:00:00.000Z',
      level: 'error',
      verb: 'mount',
      outcome: 'Failure',
      durationMs: 12345,
    }
    const raw = JSON.stringify({ ...entry, pod: 'shop/cart', error: LONG })
    expect(tooLong(formatOutputLines([formatLogEntry(raw)], false, width), width)).toEqual([])
  })
})

describe('the tables of status', () => {
  const lines = (width?: number, form?: 'wide') =>
    formatOutputLines(
      statusVerb.lines(whole, { width, command: { verb: 'status', metrics: undefined, form } }),
      false,
    ).split('\n')

  it('have fewer columns on a terminal of 60, and cut no value on one of 200 or if stdout is no terminal', () => {
    expect(lines(60)[0]).toMatch(/^pod +source +group +state$/)
    expect(lines(80)[0]).toMatch(/^pod +source +group +ownership +age +state$/)
    for (const width of [200, undefined]) expect(lines(width).join('\n')).not.toContain('…')
  })

  it('shorten paths in the middle, and volume names to unique beginnings', () => {
    const row = lines(80).find((line) => line.includes('interrupted')) ?? ''
    expect(row).toMatch(/^prod\S*…\S+ +\/srv\S*…\S+cart +2000000000 +option +\S+ +interrupted$/)
    const [, ...volumes] = lines(60).slice(lines(60).findIndex((line) => /^volume /.test(line)))
    const names = volumes.flatMap((line) => line.match(/^ef53\S*(?=…)/)?.[0] ?? [])
    expect(names).toHaveLength(2)
    expect(whole.volumes.filter((one) => one.volume.startsWith(names[0] ?? '')).map((one) => one.volume)).toEqual([
      mount.volume,
    ])
  })

  it('have every column with -o wide, one row for each item, uncut at any width', () => {
    const [head, row] = lines(60, 'wide')
    expect(head?.split(/ +/)).toEqual('pod source group ownership age state type access volume directory'.split(' '))
    expect(row).toContain(`bind  rw      ${mount.volume}  ${DIRECTORY}`)
  })
})

describe('the other forms of status', () => {
  it('status -o name prints each name once', () => {
    const command = { verb: 'status', metrics: undefined, form: 'name' } as const
    expect(statusVerb.lines(whole, { command })).toEqual([DIRECTORY, ...whole.volumes.map((one) => one.volume)])
  })

  it('status -o yaml has the same data as the JSON, without control characters', () => {
    const hostile = { ...whole, mounts: [{ ...mount, source: '/srv/\x1b[31m\u202e: "\n- x', pod: 'yes' }] }
    const text = formatYamlDocument(hostile)
    expect(text).toMatch(/^apiVersion: "modekeep\/v1"\nkind: "Status"\nmounts:\n {2}- directory: /)
    expect(text.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\p{Cf}]/u)
    expect(parse(text)).toEqual(JSON.parse(formatJsonDocument(hostile)))
  })
})

describe('a line that is too long', () => {
  it('continues on the next line, indented further, with its blanks unchanged', () => {
    expect(foldLine('  ok       one two three four', 20)).toEqual(['  ok       one two', '      three four'])
  })

  it('keeps a path and a quoted text in one piece', () => {
    expect(foldLine('see /a/very/long/path/to/it and go', 10)).toEqual([
      'see',
      '    /a/very/long/path/to/it',
      '    and go',
    ])
    expect(foldLine('call "modekeep restore x" then', 27)).toEqual(['call "modekeep restore x"', '    then'])
    expect(foldLine('now call "modekeep restore x" then', 26)).toEqual([
      'now call',
      '    "modekeep restore x"',
      '    then',
    ])
  })
})

it('a screen of status --watch overwrites the previous screen, and counts the lines that do not fit', () => {
  expect(formatTerminalScreen('a\nb\n', 4)).toBe('\x1b[Ha\x1b[K\nb\x1b[K\n\x1b[J')
  expect(formatTerminalScreen('a\nb\nc\nd\n', 4)).toBe('\x1b[Ha\x1b[K\nb\x1b[K\n… 2 more lines\x1b[K\n\x1b[J')
})
