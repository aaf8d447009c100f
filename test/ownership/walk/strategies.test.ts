import { describe, expect, it } from 'vitest'
import { DIRECTORY_TYPE, REGULAR_FILE_TYPE, type Stat, SYMLINK_TYPE } from '../../../src/kernel/host.ts'
import {
  formatInodeKey,
  type InodeRecord,
  type InodeState,
  NO_RECORDED_ACLS,
} from '../../../src/ownership/inode/record.ts'
import { createWalkStrategy, type GroupStrategySpec } from '../../../src/ownership/walk/strategies.ts'
import { FS_GROUP } from '../../helpers/mount-records.ts'

const CHARACTER = 0o020000
const PATH = Buffer.from('a')
const CAP = Uint8Array.of(1, 0, 0, 2)

const stat = (over: Partial<Stat> = {}): Stat => ({
  device: 1,
  inode: 7n,
  born: 3n,
  changed: 50,
  modified: 9n,
  size: 4n,
  mode: REGULAR_FILE_TYPE | 0o640,
  uid: 0,
  gid: 5,
  links: 1,
  mountId: 1,
  mountRoot: false,
  immutable: false,
  ...over,
})
const found = (over: Partial<Stat> = {}, more: Partial<InodeState> = {}): InodeState => ({
  stat: stat(over),
  capability: undefined,
  acl: undefined,
  ...more,
})

/** As a walk for group 2000 has recorded and made it. */
const record = (over: Partial<InodeRecord> = {}): InodeRecord => ({
  inode: 7n,
  born: 3n,
  path: PATH,
  uid: 0,
  before: { gid: 5, mode: 0o640 },
  capability: undefined,
  acl: NO_RECORDED_ACLS,
  modified: 9n,
  size: 4n,
  seen: { gid: 5, mode: 0o640 },
  intended: { gid: 5, mode: 0o640 },
  capabilityIntact: true,
  forfeited: false,
  after: { gid: 2000, mode: 0o640 },
  settled: true,
  ...over,
})

const own = (over: Partial<GroupStrategySpec> = {}) =>
  createWalkStrategy({
    do: 'apply',
    fsGroup: FS_GROUP,
    isFirstWalk: false,
    startedAtMs: 100,
    unfinished: new Set(),
    hasRestoreBegun: false,
    ...over,
  })
const restore = (isForced = false) => createWalkStrategy({ do: 'restore', isForced })
const LEFT = 'changed since by its user'

describe('the strategy that applies a group', () => {
  it.each<[string, Partial<Stat>, unknown]>([
    ['a link', { mode: SYMLINK_TYPE | 0o777 }, { skip: 'symlink' }],
    ['a device', { mode: CHARACTER | 0o660 }, { skip: 'device' }],
    ['a file with the group', { gid: 2000 }, 'unchanged'],
    ['a file with another group', {}, 'inspect'],
    ['a directory without set-gid', { gid: 2000, mode: DIRECTORY_TYPE | 0o755 }, 'inspect'],
    ['a directory with set-gid', { gid: 2000, mode: DIRECTORY_TYPE | 0o2755 }, 'unchanged'],
  ])('the strategy that applies a group classifies %s before inspection', (_what, over, seen) => {
    expect(own().classify(stat(over))).toEqual(seen)
  })

  it('a walk after an unfinished restore inspects every inode, because an inode with the requested group may have another target recorded', () => {
    expect(own({ hasRestoreBegun: true }).classify(stat({ gid: 2000 }))).toBe('inspect')
  })

  it('an inode with an unfinished change is inspected, although its group and mode are as requested', () => {
    const unfinished = new Set([formatInodeKey({ inode: 7n, born: 3n })])
    expect(own({ unfinished }).classify(stat({ gid: 2000 }))).toBe('inspect')
    expect(own({ unfinished }).classify(stat({ gid: 2000, born: 4n }))).toBe('unchanged')
  })

  it('a walk with an empty journal queries only inodes that the same walk may have changed', () => {
    expect(own().needsRecord(stat())).toBe(true)
    const first = own({ isFirstWalk: true })
    expect([99, 100].map((changed) => first.needsRecord(stat({ changed })))).toEqual([false, true])
  })

  it('a decision records the state before and the target', () => {
    expect(own().decide(found(), PATH, undefined)).toMatchObject({
      change: { before: { gid: 5, mode: 0o640 }, after: { gid: 2000, mode: 0o640 }, settled: false },
      forfeits: false,
    })
    const granted = own({ fsGroup: { ...FS_GROUP, access: 'grant' } }).decide(found(), PATH, undefined)
    expect(granted.change?.after).toEqual({ gid: 2000, mode: 0o660 })
  })

  it('a walk with a second group keeps the recorded state from before the first group', () => {
    const second = own({ fsGroup: { ...FS_GROUP, groupId: 3000 } })
    const { change } = second.decide(found({ gid: 2000 }), PATH, record())
    expect(change).toMatchObject({ before: { gid: 5, mode: 0o640 }, after: { gid: 3000, mode: 0o640 } })
  })

  it.each<[string, Partial<InodeRecord>, Partial<Stat>]>([
    ['another group', {}, { gid: 4000 }],
    ['other permission bits', {}, { gid: 2000, mode: REGULAR_FILE_TYPE | 0o600 }],
    ['its first group', {}, { gid: 5 }],
  ])("a user's change since a walk for the same group is kept: %s", (_what, over, now) => {
    expect(own().decide(found(now), PATH, record(over))).toEqual({ skip: LEFT })
  })

  it.each([
    ['restored by an interrupted restore, is changed again', true, true],
    ['changed back by its user, is skipped', false, false],
  ])('a file with its first group and mode, %s', (_what, hasRestoreBegun, isGiven) => {
    const { change, skip } = own({ hasRestoreBegun }).decide(found(), PATH, record())
    expect([change?.after.gid, skip]).toEqual(isGiven ? [2000, undefined] : [undefined, LEFT])
  })

  it("a user's change is kept, and drops the target of an interrupted call", () => {
    const begun = record({ settled: false })
    expect(own().decide(found({ gid: 4000 }), PATH, begun)).toEqual({ skip: LEFT, settle: begun })
  })
})

describe('the strategy that restores', () => {
  it('inodes that no walk changes are ignored, and all others are inspected', () => {
    expect(restore().classify(stat({ mode: SYMLINK_TYPE | 0o777 }))).toBe('ignore')
    expect(restore().classify(stat())).toBe('inspect')
    expect([restore().needsRecord(stat()), restore().forgetsRecords, own().forgetsRecords]).toEqual([true, true, false])
  })

  it('an inode that was never recorded is not changed', () => {
    expect(restore(true).decide(found(), PATH, undefined)).toEqual({})
  })

  it('a restore returns the first state, with privileges', () => {
    const had = record({ before: { gid: 5, mode: 0o4755 }, after: { gid: 2000, mode: 0o4755 }, capability: CAP })
    const now = found({ gid: 2000, mode: REGULAR_FILE_TYPE | 0o4755 }, { capability: CAP })
    const { change, forfeits } = restore().decide(now, PATH, had)
    expect(change).toMatchObject({ after: { gid: 5, mode: 0o4755 }, forfeited: false })
    expect(forfeits).toBe(false)
  })

  it("a restore skips a user's change, and overrides it only if forced", () => {
    const now = found({ gid: 4000, mode: REGULAR_FILE_TYPE | 0o600 })
    expect(restore().decide(now, PATH, record())).toEqual({ skip: LEFT })
    expect(restore(true).decide(now, PATH, record()).change?.after).toEqual({ gid: 5, mode: 0o640 })
  })

  it.each<[string, Partial<InodeRecord>, InodeState]>([
    ['may be another inode, as its birth time is unknown', { born: 0n }, found({ gid: 4000, born: 0n })],
    ['has a new capability', {}, found({ gid: 4000 }, { capability: CAP })],
  ])('a forced restore does not override an inode that %s', (_what, over, now) => {
    expect(restore(true).decide(now, PATH, record(over))).toEqual({ skip: LEFT })
  })

  it('a forced restore gives no privileges to content that may have changed', () => {
    const had = record({ before: { gid: 5, mode: 0o4755 }, after: { gid: 2000, mode: 0o4755 } })
    const { change, forfeits } = restore(true).decide(found({ gid: 4000, mode: REGULAR_FILE_TYPE | 0o755 }), PATH, had)
    expect(change).toMatchObject({ after: { gid: 5, mode: 0o755 }, forfeited: true })
    expect(forfeits).toBe(true)
  })

  it('a restore does not return set-gid of another group to a file that was written to', () => {
    const had = record({ before: { gid: 5, mode: 0o2755 }, after: { gid: 2000, mode: 0o2755 } })
    const asLeft = { gid: 2000, mode: REGULAR_FILE_TYPE | 0o2755 }
    expect(restore().decide(found(asLeft), PATH, had).change?.after).toEqual({ gid: 5, mode: 0o2755 })
    for (const written of [{ modified: 10n }, { size: 5n }]) {
      const { change, forfeits } = restore().decide(found({ ...asLeft, ...written }), PATH, had)
      expect([change?.after, forfeits]).toEqual([{ gid: 5, mode: 0o755 }, true])
    }
  })
})
