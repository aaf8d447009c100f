import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { DirentIterator } from '../../../src/kernel/dirents.ts'
import type { Handle, Inodes } from '../../../src/kernel/host.ts'
import { LivelockGuard } from '../../../src/ownership/walk/livelock-guard.ts'

const HOUR = 3_600_000
const ENTRY = 24

/** As many entries as a block has, with names of one letter. */
function blockOf(count: number): DirentIterator {
  const bytes = new Uint8Array(count * ENTRY)
  for (let at = 0; at < count; at++) bytes.set([ENTRY, 0, 8, 0x61 + (at % 26)], at * ENTRY + 16)
  return new DirentIterator(bytes)
}

let looks = 0
let now: number
beforeEach(() => {
  looks = 0
  now = Date.now()
  // However long a test waits for a processor, what is of now is of the time since its walk began.
  vi.useFakeTimers({ now, toFake: ['Date'] })
})
afterEach(() => {
  vi.useRealTimers()
})

/** Whose entries have this ctime; undefined: they are gone. */
function inodesOf(changed: () => number | undefined): Inodes {
  const viewEntry = () => {
    looks++
    const time = changed()
    if (time === undefined) throw Object.assign(new Error('gone'), { code: 'ENOENT' })
    return { changed: time }
  }
  return { viewEntry } as unknown as Inodes
}

const read = (changed: number, isMoved = false) => ({
  handle: 3 as Handle,
  path: Buffer.from('d/e'),
  changed,
  isMoved,
  rereadCount: 0,
})
const verdict = (met: (unrest: LivelockGuard) => void, patience = 0) => {
  const unrest = new LivelockGuard(patience)
  met(unrest)
  try {
    unrest.check()
    return 'goes on'
  } catch (error) {
    return (error as Error).message
  }
}
const MANY = 3000
/** Met in a directory. @param changed its ctime @param itsChanged theirs */
const entriesIn = (unrest: LivelockGuard, changed: number, itsChanged: number) =>
  unrest.countEntries(
    inodesOf(() => itsChanged),
    read(changed),
    blockOf(MANY),
  )

describe('the guard against endless walks', () => {
  const inPlace = (unrest: LivelockGuard) => entriesIn(unrest, now - HOUR, now)

  it('a walk continues without inspecting entries if files are written to but nothing is moved', () => {
    expect(verdict(inPlace)).toBe('goes on')
    expect(looks).toBe(0)
  })

  it('a walk continues if a directory changes but its entries do not, and inspects a sample of them', () => {
    expect(verdict((unrest) => entriesIn(unrest, now, now - HOUR))).toBe('goes on')
    expect(looks).toBeGreaterThan(0)
    expect(looks).toBeLessThanOrEqual(33)
  })

  it.each([
    ['created or moved', () => now, false],
    ['gone', () => undefined, false],
    ['in a directory that was moved', () => now - HOUR, true],
  ])('a walk ends if nearly all entries are %s, and the message names the directory', (_what, changed, isMoved) => {
    expect(verdict((unrest) => unrest.countEntries(inodesOf(changed), read(now, isMoved), blockOf(MANY)))).toMatch(
      /^the volume changes faster than it can be walked: 3000 entries .*, and 0 were in their places; the last ones were in directory "d\/e"/,
    )
  })

  it('a walk continues during its grace period despite any moves', () => {
    expect(verdict((unrest) => entriesIn(unrest, now, now), HOUR)).toBe('goes on')
  })

  it('a walk continues with two moved entries for each one in place, and ends with more', () => {
    const mixed = (moved: number) => (unrest: LivelockGuard) => {
      inPlace(unrest)
      unrest.countMoved(moved, new Uint8Array())
    }
    expect(verdict(mixed(2 * MANY))).toBe('goes on')
    expect(verdict(mixed(2 * MANY + 1001))).toMatch(/in directory "\."/)
  })

  it('a directory entry that is read twice counts once', () => {
    const unrest = new LivelockGuard(0)
    for (let turn = 0; turn < 100; turn++) {
      const again = turn === 0 ? 0 : MANY
      unrest.countEntries(
        inodesOf(() => now),
        { ...read(now - HOUR), rereadCount: again },
        blockOf(MANY),
      )
    }
    unrest.countMoved(2 * MANY + 1001, new Uint8Array())
    expect(() => unrest.check()).toThrow(`and ${MANY} were in their places`)
  })

  it('a ctime in the future, which a clock that was set back leaves, does not count as recent', () => {
    expect(new LivelockGuard().isRecent(now + HOUR)).toBe(false)
    expect(new LivelockGuard().isRecent(now - HOUR)).toBe(false)
    vi.useFakeTimers({ now })
    try {
      const unrest = new LivelockGuard()
      vi.setSystemTime(now + 2 * HOUR)
      expect(unrest.isRecent(now + HOUR)).toBe(true)
    } finally {
      vi.useRealTimers()
    }
  })
})
