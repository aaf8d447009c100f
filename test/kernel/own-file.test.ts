import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { setTimeout } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type KnownTexts, readOwnFile } from '../../src/kernel/own-file.ts'
import { isRoot } from '../helpers/stage.ts'

/** Until a change of now shows in the file's times. */
const SETTLED_MS = 150

describe('a file of modekeep', () => {
  let directory: string
  let path: string
  let opens: number
  let known: KnownTexts
  beforeEach(() => {
    directory = fs.mkdtempSync(`${tmpdir()}/modekeep-own-`)
    path = `${directory}/record`
    opens = 0
    known = new Map()
  })
  afterEach(() => fs.rmSync(directory, { recursive: true, force: true }))

  const counting = {
    ...fs,
    openSync: (...args: Parameters<typeof fs.openSync>) => {
      opens++
      return fs.openSync(...args)
    },
  } as typeof fs
  const read = () => readOwnFile(counting, path, known)

  function replace(text: string): void {
    fs.writeFileSync(`${path}.new`, text)
    fs.renameSync(`${path}.new`, path)
  }

  it('is not opened again as long as it is the same', async () => {
    replace('one')
    await setTimeout(SETTLED_MS)
    expect(read()).toBe('one')
    const once = opens
    expect([read(), read()]).toEqual(['one', 'one'])
    expect(opens).toBe(once)
    fs.rmSync(path)
    expect(read()).toBeUndefined()
  })

  /** Times in whole units, and an inode number that is used again at once. */
  const withClockOf = (unitNs: bigint) =>
    ({
      ...fs,
      statSync: (...args: Parameters<typeof fs.statSync>) => {
        const stat: fs.Stats | fs.BigIntStats | undefined = fs.statSync(...args)
        if (stat === undefined || stat instanceof fs.Stats) return stat
        const coarsen = (time: bigint) => time - (time % unitNs)
        const ctimeNs = coarsen(stat.ctimeNs)
        const times = { mtimeNs: coarsen(stat.mtimeNs), ctimeNs, ctimeMs: ctimeNs / 1_000_000n }
        return Object.assign(Object.create(stat), { ...stat, ...times, ino: 7n, isDirectory: () => false })
      },
    }) as typeof fs

  it.each([
    ['the clock of this kernel', fs],
    ['a clock of 10 ms, as before Linux 6.13', withClockOf(10_000_000n)],
    ['a clock of seconds, as of ext4 with small inodes', withClockOf(1_000_000_000n)],
  ])('is read anew after each change, also of the same size, with %s', async (_clock, over) => {
    const read = () => readOwnFile(over, path, known)
    for (let round = 0; round < 3; round++) {
      for (let turn = 100; turn < 400; turn++) {
        if (turn % 2 === 0) replace(`${turn}`)
        else fs.writeFileSync(path, `${turn}`)
        expect(read()).toBe(`${turn}`)
      }
      await setTimeout(SETTLED_MS)
      expect([read(), read()]).toEqual(['399', '399'])
    }
  })

  it('is read anew if the read before overlapped a replacement', async () => {
    replace('old')
    await setTimeout(SETTLED_MS)
    const late = {
      ...fs,
      openSync: (...args: Parameters<typeof fs.openSync>) => {
        if (fs.readFileSync(path, 'utf8') === 'old') replace('new')
        return fs.openSync(...args)
      },
    } as typeof fs
    expect(readOwnFile(late, path, known)).toBe('new')
    replace('end')
    expect(read()).toBe('end')
  })

  const reason = isRoot ? '' : ' (skipped: only root gives files away; run "sudo npm test")'
  it.skipIf(!isRoot)(`that is given to another user is refused although its text is known${reason}`, async () => {
    replace('one')
    await setTimeout(SETTLED_MS)
    expect(read()).toBe('one')
    fs.chownSync(path, 1000, 1000)
    expect(read).toThrow('belongs to another user than root')
  })
})
