import { execFileSync, spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { createTreeEntries } from '../../scripts/archive/tree.ts'
import { readSourceDate } from '../../scripts/release/source-date.ts'
import { createTarArchive, type TarEntry } from '../../src/cli/output/tar.ts'

const LONG = `${'d'.repeat(80)}/${'e'.repeat(60)}/${'f'.repeat(90)}`
const TIME = 1_700_000_000

const ENTRIES: TarEntry[] = [
  { path: 'd', directory: true, mode: 0o1777 },
  { path: 'd/file', bytes: Buffer.from('text'), mode: 0o755 },
  { path: 'd/link', link: 'file' },
  { path: 'd/empty', bytes: Buffer.alloc(0), mode: 0o600 },
  { path: 'd/block', bytes: Buffer.alloc(512, 'x'), mode: 0o644 },
  { path: LONG, bytes: Buffer.alloc(513, 'y'), mode: 0o644 },
]

it("the machine's tar lists an archive with the given names, bytes, modes, owners and times", () => {
  const input = createTarArchive(ENTRIES, TIME)
  const listed = execFileSync('tar', ['-tvf', '-', '--numeric-owner', '--utc', '--full-time'], { input })
  expect(
    listed
      .toString()
      .trim()
      .split('\n')
      .map((line) => line.replaceAll(/ +/g, ' ')),
  ).toEqual([
    'drwxrwxrwt 0/0 0 2023-11-14 22:13:20 d/',
    '-rwxr-xr-x 0/0 4 2023-11-14 22:13:20 d/file',
    'lrwxrwxrwx 0/0 0 2023-11-14 22:13:20 d/link -> file',
    '-rw------- 0/0 0 2023-11-14 22:13:20 d/empty',
    '-rw-r--r-- 0/0 512 2023-11-14 22:13:20 d/block',
    `-rw-r--r-- 0/0 513 2023-11-14 22:13:20 ${LONG}`,
  ])
  const directory = fs.mkdtempSync(join(tmpdir(), 'modekeep-tar-'))
  onTestFinished(() => fs.rmSync(directory, { recursive: true }))
  execFileSync('tar', ['-xpf', '-', '-C', directory], { input })
  for (const entry of ENTRIES) {
    if ('bytes' in entry) expect(fs.readFileSync(join(directory, entry.path)), entry.path).toEqual(entry.bytes)
  }
  expect(fs.readFileSync(`${directory}/d/link`, 'utf8')).toBe('text')
  // What tar has just unpacked is, to tar, what the archive has.
  const { stdout, stderr } = spawnSync('tar', ['--compare', '-f', '-', '-C', directory], { input, encoding: 'utf8' })
  // Root alone can give files away: for others they are their own.
  const owner = process.getuid?.() === 0 ? /^$/ : /^$|: (Uid|Gid) differs$/
  expect(`${stdout}${stderr}`.split('\n').filter((line) => !owner.test(line))).toEqual([])
})

it.each([
  ['a name', { path: 'f'.repeat(101), bytes: Buffer.alloc(0), mode: 0 }],
  ['a directory', { path: 'd'.repeat(100), directory: true, mode: 0 }],
  ['a link', { path: 'l', link: 'x'.repeat(101) }],
] as const)('an archive refuses a %s that is too long for the format', (_what, entry) => {
  expect(() => createTarArchive([entry], 0)).toThrow('too long')
})

it('an archive has directories before their content, for any order of files', () => {
  const files = ['z/y/b', 'a', 'z/c'].map((path) => ({ path, bytes: Buffer.from(path), isProgram: path === 'a' }))
  const tree = createTreeEntries('top', files)
  const listed = execFileSync('tar', ['-tvf', '-'], { input: createTarArchive(tree, TIME), encoding: 'utf8' })
  const rows = listed.trim().split('\n')
  expect(rows.map((row) => row.replace(/^(\S+) .* (\S+)$/, '$1 $2'))).toEqual([
    'drwxr-xr-x top/',
    '-rwxr-xr-x top/a',
    'drwxr-xr-x top/z/',
    '-rw-r--r-- top/z/c',
    'drwxr-xr-x top/z/y/',
    '-rw-r--r-- top/z/y/b',
  ])
  expect(createTreeEntries('top', files.toReversed())).toEqual(tree)
})

it('a release has the time of its sources, and a message names SOURCE_DATE_EPOCH if that is unknown', async () => {
  expect(await readSourceDate('/', '1700000000')).toBe(1_700_000_000)
  await expect(readSourceDate('/', 'now')).rejects.toThrow('SOURCE_DATE_EPOCH is "now"')
  await expect(readSourceDate('/', undefined)).rejects.toThrow('set SOURCE_DATE_EPOCH')
})
