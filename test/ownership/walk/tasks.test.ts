import { describe, expect, it } from 'vitest'
import { DIRECTORY, REGULAR, type Stat, SYMLINK } from '../../../src/host/host.ts'
import { type Found, type InodeRecord, keyOf, NO_ACL } from '../../../src/ownership/inode/record.ts'
import { type OwnSpec, taskOf } from '../../../src/ownership/walk/tasks.ts'

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
const found = (over: Partial<Stat> = {}, more: Partial<Found> = {}): Found => ({
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
  meant: { gid: 5, mode: 0o640 },
  seenWhole: true,
  forfeited: false,
  after: { gid: 2000, mode: 0o640 },
  settled: true,
  ...over,
})

const own = (over: Partial<OwnSpec> = {}) =>
  taskOf({
    do: 'own',
    order: { group: 2000, access: 'keep' },
    firstTime: false,
    started: 100,
    unfinished: new Set(),
    hasRestoreBegun: false,
    ...over,
  })
const restore = (isForced = false) => taskOf({ do: 'restore', isForced })
const LEFT = 'changed since by its user'

describe('a walk that gives a group', () => {
  it.each<[string, Partial<Stat>, unknown]>([
    ['a link', { mode: SYMLINK | 0o777 }, { leave: 'symlink' }],
    ['a device, which opens hardware', { mode: CHARACTER | 0o660 }, { leave: 'device' }],
    ['what has the group', { gid: 2000 }, 'right'],
    ['what has another', {}, 'look'],
    ['a directory without set-gid', { gid: 2000, mode: DIRECTORY | 0o755 }, 'look'],
    ['a directory with it', { gid: 2000, mode: DIRECTORY | 0o2755 }, 'right'],
  ])('meets %s', (_what, over, seen) => {
    expect(own().glance(stat(over))).toEqual(seen)
  })

  it('looks at all after a restore that was begun: what is right was perhaps put back, and is recorded as something else', () => {
    expect(own({ hasRestoreBegun: true }).glance(stat({ gid: 2000 }))).toBe('look')
  })

  it('looks at what an interrupted call may have left half changed, though it seems right', () => {
    const unfinished = new Set([keyOf({ inode: 7n, born: 3n })])
    expect(own({ unfinished }).glance(stat({ gid: 2000 }))).toBe('look')
    expect(own({ unfinished }).glance(stat({ gid: 2000, born: 4n }))).toBe('right')
  })

  it('asks an empty journal only for what this walk itself may have changed', () => {
    expect(own().asksFor(stat())).toBe(true)
    const first = own({ firstTime: true })
    expect([99, 100].map((changed) => first.asksFor(stat({ changed })))).toEqual([false, true])
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
    expect(own().decide(found(now), PATH, record(over))).toEqual({ leave: LEFT })
  })

  it.each([
    ['a restore that was begun and ended in between', true, true],
    ['its user', false, false],
  ])('finds a file as it was at first: %s put it back', (_what, hasRestoreBegun, isGiven) => {
    const { change, leave } = own({ hasRestoreBegun }).decide(found(), PATH, record())
    expect([change?.after.gid, leave]).toEqual(isGiven ? [2000, undefined] : [undefined, LEFT])
  })

  it('leaves what its user changed to him, and no longer finishes what was begun', () => {
    const begun = record({ settled: false })
    expect(own().decide(found({ gid: 4000 }), PATH, begun)).toEqual({ leave: LEFT, settle: begun })
  })
})

describe('a walk that puts back', () => {
  it('passes over what no walk changes, and looks at everything else', () => {
    expect(restore().glance(stat({ mode: SYMLINK | 0o777 }))).toBe('passed')
    expect(restore().glance(stat())).toBe('look')
    expect([restore().asksFor(stat()), restore().forgets, own().forgets]).toEqual([true, true, false])
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
    expect(restore().decide(now, PATH, record())).toEqual({ leave: LEFT })
    expect(restore(true).decide(now, PATH, record()).change?.after).toEqual({ gid: 5, mode: 0o640 })
  })

  it.each<[string, Partial<InodeRecord>, Found]>([
    ['may be another inode: there is no birth time', { born: 0n }, found({ gid: 4000, born: 0n })],
    ['was given a capability', {}, found({ gid: 4000 }, { capability: CAP })],
  ])('does not override where it %s', (_what, over, now) => {
    expect(restore(true).decide(now, PATH, record(over))).toEqual({ leave: LEFT })
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
