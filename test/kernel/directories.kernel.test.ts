import * as fs from 'node:fs'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createNodeFiles } from '../../src/kernel/administration.ts'
import { nodeFs } from '../../src/kernel/path-handle.ts'
import { createTrustedFiles } from '../../src/kernel/trusted-files.ts'
import { appendLogLine } from '../../src/log/log-file.ts'
import { addSkipReason } from '../helpers/needs.ts'
import { swapDirectories } from '../helpers/sockets.ts'
import { isRoot } from '../helpers/stage.ts'

const USER = 1000
const skipReason = isRoot ? '' : 'files of other users need root; run "sudo npm test"'

let top: string
let own: string
let others: string
beforeEach(() => {
  top = fs.mkdtempSync('/tmp/modekeep-directories-')
  own = `${top}/own`
  others = `${top}/others`
  for (const directory of [own, others]) {
    fs.mkdirSync(`${directory}/full/empty`, { recursive: true })
    fs.writeFileSync(`${directory}/file`, directory)
  }
})
afterEach(() => fs.rmSync(top, { recursive: true, force: true }))

type Call = 'mkdirSync' | 'readdirSync' | 'renameSync' | 'rmdirSync' | 'rmSync' | 'symlinkSync' | 'openSync'

/** Returns a node:fs that replaces the directory `own` by a link before the first matching call of one function. */
function exchangingBefore(call: Call, isMeant: (path: string) => boolean = () => true): typeof fs {
  let isDone = false
  return {
    ...fs,
    [call]: (...args: unknown[]) => {
      if (!isDone && isMeant(String(args[0]))) {
        isDone = true
        swapDirectories(own, others)
      }
      return (nodeFs[call] as (...args: unknown[]) => unknown)(...args)
    },
  } as typeof fs
}

/** Lists all paths below a directory. */
const tree = (directory: string) => fs.readdirSync(directory, { recursive: true }).sort()

const BEFORE = ['file', 'full', 'full/empty']

describe('a directory that is replaced after modekeep has opened it', () => {
  it.each<[string, Call, (over: typeof fs) => void, string[]]>([
    [
      'creates a directory in',
      'mkdirSync',
      (over) => createTrustedFiles(over).makeDirectory(`${own}/a/b`),
      ['a', 'a/b', ...BEFORE],
    ],
    [
      'installs a directory in',
      'mkdirSync',
      (over) => createNodeFiles(over).makeDirectory(`${own}/a/b`, 0o755),
      ['a', 'a/b', ...BEFORE],
    ],
    [
      'moves a directory in',
      'renameSync',
      (over) => createTrustedFiles(over).moveDirectory(`${own}/full`, `${own}/moved`),
      ['file', 'moved', 'moved/empty'],
    ],
    [
      'removes an empty directory in',
      'rmdirSync',
      (over) => createTrustedFiles(over).removeEmpty(`${own}/full/empty`, `${own}/full`),
      ['file', 'full'],
    ],
    [
      'removes an installed directory in',
      'rmdirSync',
      (over) => createNodeFiles(over).removeEmpty(`${own}/full/empty`),
      ['file', 'full'],
    ],
    ['removes a tree in', 'rmSync', (over) => createNodeFiles(over).removeTree(`${own}/full`), ['file']],
    ['removes a file in', 'rmSync', (over) => createNodeFiles(over).remove(`${own}/file`), ['full', 'full/empty']],
    [
      'renames a file in',
      'renameSync',
      (over) => createNodeFiles(over).rename(`${own}/file`, `${own}/new`),
      ['full', 'full/empty', 'new'],
    ],
    [
      'creates a link in',
      'symlinkSync',
      (over) => createNodeFiles(over).link('target', `${own}/link`),
      ['file', 'full', 'full/empty', 'link'],
    ],
  ])('is still the one that modekeep %s', (_what, call, act, after) => {
    act(exchangingBefore(call))
    expect(tree(`${own}-moved`)).toEqual(after)
    expect(tree(others)).toEqual(BEFORE)
  })

  it('is the directory whose names modekeep lists, not the replacement', () => {
    fs.writeFileSync(`${others}/more`, '')
    expect(createTrustedFiles(exchangingBefore('readdirSync')).list(own).sort()).toEqual(['file', 'full'])
  })

  it('is the directory in which modekeep creates a file, not the replacement', () => {
    const isNew = (path: string) => path.endsWith('/new')
    createNodeFiles(exchangingBefore('openSync', isNew)).create(`${own}/new`, Buffer.from('bytes'))
    expect([tree(`${own}-moved`), tree(others)]).toEqual([['file', 'full', 'full/empty', 'new'], BEFORE])
  })

  it("is the directory in which modekeep sets a file's mode, not the replacement", () => {
    const isAbout = (path: string) => path.endsWith('/file')
    createNodeFiles(exchangingBefore('openSync', isAbout)).chmod(`${own}/file`, 0o640)
    expect([fs.statSync(`${own}-moved/file`).mode & 0o777, fs.statSync(`${others}/file`).mode & 0o777]).toEqual([
      0o640, 0o644,
    ])
  })
})

it('the error of a failed rename of a directory names both paths, and no descriptor', () => {
  fs.mkdirSync(`${others}/full/more`, { recursive: true })
  const move = () => createTrustedFiles(fs).moveDirectory(`${own}/full`, `${others}/full`)
  expect(move).toThrow(`rename '${own}/full' -> '${others}/full'`)
})

describe.skipIf(!isRoot)(addSkipReason('directories that modekeep creates', skipReason), () => {
  /** Creates a directory that other users can write. */
  const shared = () => {
    fs.mkdirSync(`${top}/shared`)
    fs.chmodSync(`${top}/shared`, 0o777)
    return `${top}/shared`
  }

  it('are not created behind a link that other users could place', () => {
    fs.symlinkSync(others, `${shared()}/link`)
    appendLogLine(fs, `${top}/shared/link/deep/modekeep/log`, 'line')
    const path = `${top}/shared/link/deep/modekeep`
    expect(() => createTrustedFiles(fs).makeDirectory(path)).toThrow(/ELOOP/)
    expect(() => createNodeFiles(fs).makeDirectory(path, 0o755)).toThrow(/ELOOP/)
    expect(tree(others)).toEqual(BEFORE)
  })

  it('are not created below a directory that another user put in their place', () => {
    const place = `${shared()}/state`
    const racing = {
      ...fs,
      mkdirSync: (path: string, options?: fs.MakeDirectoryOptions) => {
        if (!fs.existsSync(place)) {
          fs.mkdirSync(place)
          fs.chownSync(place, USER, USER)
        }
        return fs.mkdirSync(path, options)
      },
    } as typeof fs
    expect(() => createTrustedFiles(racing).makeDirectory(`${place}/mounts`)).toThrow(
      /EPERM \(it belongs to another user/,
    )
    expect(tree(place)).toEqual([])
  })

  it('are refused if they exist and belong to another user', () => {
    fs.chownSync(own, USER, USER)
    expect(() => createTrustedFiles(fs).makeDirectory(own)).toThrow(/EPERM \(it belongs to another user than root/)
  })

  it('are created below links of root, with the requested modes', () => {
    fs.symlinkSync('own', `${top}/link`)
    createNodeFiles(fs).makeDirectory(`${top}/link/a/b`, 0o700)
    expect(['a', 'a/b'].map((name) => fs.statSync(`${own}/${name}`).mode & 0o777)).toEqual([0o755, 0o700])
  })
})
