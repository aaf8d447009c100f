import { describe, expect, it } from 'vitest'
import { DIRECTORY, REGULAR, type Stat, SYMLINK } from '../../../src/host/host.ts'
import { formatInodeKey, type InodeRecord, type InodeState, NO_ACL } from '../../../src/ownership/inode/record.ts'
import { createStrategy, type GroupStrategySpec } from '../../../src/ownership/walk/strategies.ts'

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
  mode: REGULAR | 0o640,
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
  acl: NO_ACL,
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
  createStrategy({
    do: 'own',
    order: { group: 2000, access: 'keep' },
    isFirstWalk: false,
    startedAtMs: 100,
    unfinished: new Set(),
    hasRestoreBegun: false,
    ...over,
  })
const restore = (isForced = false) => createStrategy({ do: 'restore', isForced })
const LEFT = 'changed since by its user'

describe('a walk that gives a group', () => {
  it.each<[string, Partial<Stat>, unknown]>([
    ['a link', { mode: SYMLINK | 0o777 }, { skip: 'symlink' }],
    ['a device, which opens hardware', { mode: CHARACTER | 0o660 }, { skip: 'device' }],
    ['what has the group', { gid: 2000 }, 'unchanged'],
    ['what has another', {}, 'inspect'],
    ['a directory without set-gid', { gid: 2000, mode: DIRECTORY | 0o755 }, 'inspect'],
    ['a directory with it', { gid: 2000, mode: DIRECTORY | 0o2755 }, 'unchanged'],
  ])('meets %s', (_what, over, seen) => {
    expect(own().classify(stat(over))).toEqual(seen)
  })

  it('looks at all after a restore that was begun: what is right was perhaps put back, and is recorded as something else', () => {
    expect(own({ hasRestoreBegun: true }).classify(stat({ gid: 2000 }))).toBe('inspect')
  })

  it('looks at what an interrupted call may have left half changed, though it seems right', () => {
    const unfinished = new Set([formatInodeKey({ inode: 7n, born: 3n })])
    expect(own({ unfinished }).classify(stat({ gid: 2000 }))).toBe('inspect')
    expect(own({ unfinished }).classify(stat({ gid: 2000, born: 4n }))).toBe('unchanged')
  })

  it('asks an empty journal only for what this walk itself may have changed', () => {
    expect(own().needsRecord(stat())).toBe(true)
    const first = own({ isFirstWalk: true })
    expect([99, 100].map((changed) => first.needsRecord(stat({ changed })))).toEqual([false, true])
  })

  it('records what was there before, and what it will be', () => {
    expect(own().decide(found(), PATH, undefined)).toMatchObject({
      change: { before: { gid: 5, mode: 0o640 }, after: { gid: 2000, mode: 0o640 }, settled: false },
      forfeits: false,
    })
    const granted = own({ order: { group: 2000, access: 'grant' } }).decide(found(), PATH, undefined)
    expect(granted.change?.after).toEqual({ gid: 2000, mode: 0o660 })
  })

  it('keeps what was there before the first group, when another comes', () => {
    const second = own({ order: { group: 3000, access: 'keep' } })
    const { change } = second.decide(found({ gid: 2000 }), PATH, record())
    expect(change).toMatchObject({ before: { gid: 5, mode: 0o640 }, after: { gid: 3000, mode: 0o640 } })
  })

  it.each<[string, Partial<InodeRecord>, Partial<Stat>]>([
    ['gave it another group', {}, { gid: 4000 }],
    ['gave it other bits', {}, { gid: 2000, mode: REGULAR | 0o600 }],
    ['gave it back the group it had', {}, { gid: 5 }],
  ])('leaves what its user changed since a walk for the same group: %s', (_what, over, now) => {
    expect(own().decide(found(now), PATH, record(over))).toEqual({ skip: LEFT })
  })

  it.each([
    ['a restore that was begun and ended in between', true, true],
    ['its user', false, false],
  ])('finds a file as it was at first: %s put it back', (_what, hasRestoreBegun, isGiven) => {
    const { change, skip } = own({ hasRestoreBegun }).decide(found(), PATH, record())
    expect([change?.after.gid, skip]).toEqual(isGiven ? [2000, undefined] : [undefined, LEFT])
  })

  it('leaves what its user changed to him, and no longer finishes what was begun', () => {
    const begun = record({ settled: false })
    expect(own().decide(found({ gid: 4000 }), PATH, begun)).toEqual({ skip: LEFT, settle: begun })
  })
})

describe('a walk that puts back', () => {
  it('passes over what no walk changes, and looks at everything else', () => {
    expect(restore().classify(stat({ mode: SYMLINK | 0o777 }))).toBe('ignore')
    expect(restore().classify(stat())).toBe('inspect')
    expect([restore().needsRecord(stat()), restore().forgetsRecords, own().forgetsRecords]).toEqual([true, true, false])
  })

  it('does nothing to what was never recorded', () => {
    expect(restore(true).decide(found(), PATH, undefined)).toEqual({})
  })

  it('gives back what was there before, privileges included', () => {
    const had = record({ before: { gid: 5, mode: 0o4755 }, after: { gid: 2000, mode: 0o4755 }, capability: CAP })
    const now = found({ gid: 2000, mode: REGULAR | 0o4755 }, { capability: CAP })
    const { change, forfeits } = restore().decide(now, PATH, had)
    expect(change).toMatchObject({ after: { gid: 5, mode: 0o4755 }, forfeited: false })
    expect(forfeits).toBe(false)
  })

  it('leaves what its user changed, and overrides him only where that is ordered', () => {
    const now = found({ gid: 4000, mode: REGULAR | 0o600 })
    expect(restore().decide(now, PATH, record())).toEqual({ skip: LEFT })
    expect(restore(true).decide(now, PATH, record()).change?.after).toEqual({ gid: 5, mode: 0o640 })
  })

  it.each<[string, Partial<InodeRecord>, InodeState]>([
    ['may be another inode: there is no birth time', { born: 0n }, found({ gid: 4000, born: 0n })],
    ['was given a capability', {}, found({ gid: 4000 }, { capability: CAP })],
  ])('does not override where it %s', (_what, over, now) => {
    expect(restore(true).decide(now, PATH, record(over))).toEqual({ skip: LEFT })
  })

  it('gives no privileges to content that may be another, though its user is overridden', () => {
    const had = record({ before: { gid: 5, mode: 0o4755 }, after: { gid: 2000, mode: 0o4755 } })
    const { change, forfeits } = restore(true).decide(found({ gid: 4000, mode: REGULAR | 0o755 }), PATH, had)
    expect(change).toMatchObject({ after: { gid: 5, mode: 0o755 }, forfeited: true })
    expect(forfeits).toBe(true)
  })

  it('gives no foreign group back its set-gid on a file that was written to', () => {
    const had = record({ before: { gid: 5, mode: 0o2755 }, after: { gid: 2000, mode: 0o2755 } })
    const asLeft = { gid: 2000, mode: REGULAR | 0o2755 }
    expect(restore().decide(found(asLeft), PATH, had).change?.after).toEqual({ gid: 5, mode: 0o2755 })
    for (const written of [{ modified: 10n }, { size: 5n }]) {
      const { change, forfeits } = restore().decide(found({ ...asLeft, ...written }), PATH, had)
      expect([change?.after, forfeits]).toEqual([{ gid: 5, mode: 0o755 }, true])
    }
  })
})
