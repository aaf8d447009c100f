import { describe, expect, it } from 'vitest'
import type { MountRequest } from '../../src/config/mount-request.ts'
import type { VolumeKindFacts } from '../../src/fsgroup/group-plan.ts'
import { isKubeletVolume } from '../../src/kernel/mount-table/kubelet-volume.ts'
import type { TopmostMount } from '../../src/kernel/mount-table/mount-point.ts'
import type { MountPlanInput } from '../../src/mount/observe.ts'
import { type MountStep, planMount } from '../../src/mount/plan.ts'
import { type AppliedGroup, createMountRecord, type MountRecord } from '../../src/state/mount-record.ts'
import { BIND_REQUEST, FS_GROUP, NO_FS_GROUP, MOUNTED as RECORDED } from '../helpers/mount-records.ts'
import { rendered } from '../helpers/rendered.ts'

const BOOT = 'boot-2'
const VOLUME = 'fs1-2-3'
const ROOT = { device: 5, inode: 2n, group: 0 }
const SOURCE = { root: ROOT, volume: VOLUME, path: '/srv/a', isDirectory: true }
const MOUNTED: TopmostMount = { mountId: 77n, device: 5, inode: 2n, isDirectory: true }

const bind = BIND_REQUEST
const walk: MountRequest = { ...bind, ownership: 'walk' }
const tmpfs: MountRequest = { ...bind, source: { type: 'none' }, fsType: 'tmpfs' }

function ready(request: MountRequest, over: Partial<MountRecord> = {}): MountRecord {
  const source = request.fsType === 'tmpfs' ? undefined : SOURCE
  const given: AppliedGroup =
    request.ownership === 'walk' ? { by: 'walk', group: 2000, why: 'asked for' } : { by: 'none' }
  return { ...createMountRecord(request, BOOT, source), given, mounted: RECORDED, ...over }
}

function view(over: Partial<MountPlanInput> = {}): MountPlanInput {
  return {
    mounted: undefined,
    mountId: typeof over.mounted === 'object' ? over.mounted.mountId : undefined,
    target: 'directory',
    record: undefined,
    needsGuard: false,
    source: SOURCE,
    boot: BOOT,
    walked: undefined,
    ...over,
  }
}

/** As the kinds of src/volume say. */
const kindOf = (fsType: string): VolumeKindFacts => ({
  persistent: fsType !== 'tmpfs',
  walk: true,
})

const FRESH = ['record', 'make-tree', 'set-flags', 'record-ready', 'attach']
const REPLACE = ['make-tree', 'set-flags', 'record-ready', 'replace']

const NOTHING = 'nothing is mounted'
const INTERRUPTED = 'an earlier call was interrupted'
const ELSE = 'something else is mounted'

describe('a mount call', () => {
  const otherInode = { ...MOUNTED, inode: 9n }
  const cases: [string, MountRequest, Partial<MountPlanInput>, string, string, string[]][] = [
    ['on an empty directory', bind, {}, 'fresh', NOTHING, FRESH],
    ['repeated', bind, { mounted: MOUNTED, record: ready(bind) }, 'ready', 'the mount is there and as asked for', []],
    ['with only the record left', bind, { record: ready(bind) }, 'fresh', NOTHING, FRESH],
    ['after a crashed call', bind, { record: ready(bind, { mounted: undefined }) }, 'fresh', INTERRUPTED, FRESH],
    [
      'after a crashed call, with a mount',
      bind,
      { mounted: MOUNTED, record: ready(bind, { mounted: undefined }) },
      'replace',
      ELSE,
      REPLACE,
    ],
    ['on a mount without a record', bind, { mounted: MOUNTED }, 'replace', ELSE, REPLACE],
    [
      'on a mount with another id than recorded',
      bind,
      { mounted: { ...MOUNTED, mountId: 78n }, record: ready(bind) },
      'replace',
      ELSE,
      REPLACE,
    ],
    [
      'on a mount recorded in another boot with the same id',
      bind,
      { mounted: MOUNTED, record: ready(bind, { boot: 'boot-1' }) },
      'replace',
      ELSE,
      REPLACE,
    ],
    ['after a reboot', bind, { record: ready(bind, { boot: 'boot-1' }) }, 'fresh', NOTHING, FRESH],
    [
      'whose source is another inode now',
      bind,
      { mounted: otherInode, record: ready(bind) },
      'replace',
      'the source is another directory now',
      REPLACE,
    ],
    [
      'whose source is on another device now',
      bind,
      { mounted: { ...MOUNTED, device: 6 }, record: ready(bind) },
      'replace',
      'the source is another directory now',
      REPLACE,
    ],
    [
      'with another source path',
      { ...bind, source: { type: 'local', path: '/srv/b' } },
      { mounted: MOUNTED, record: ready(bind) },
      'replace',
      'the options changed',
      REPLACE,
    ],
    [
      'on an unresponsive mount',
      bind,
      { mounted: 'broken', record: ready(bind) },
      'replace',
      'what is mounted does not respond',
      REPLACE,
    ],
    [
      'on an unresponsive mount without a record',
      bind,
      { mounted: 'broken' },
      'replace',
      'what is mounted does not respond',
      REPLACE,
    ],
  ]
  it.each(cases)('%s: %#', (_what, request, over, decision, reason, steps) => {
    const plan = planMount(request, view(over), kindOf)
    expect(plan).toMatchObject({ decision, reason })
    expect(plan.steps.map((step) => step.do)).toEqual(steps)
  })

  it.each<[string, Partial<MountRequest>]>([
    ['mount options', { mountOptions: ['noexec'] }],
    ['readOnly', { readOnly: true }],
    ['fsGroup', { fsGroup: { ...FS_GROUP, groupId: 3000 } }],
    ['fsGroup (none)', { fsGroup: NO_FS_GROUP }],
    ['ownership', { ownership: 'walk' }],
    ['change policy', { fsGroup: { ...FS_GROUP, changePolicy: 'Always' } }],
    ['restoreOnUnmount', { restoreOnUnmount: true }],
    ['fsType', { fsType: 'tmpfs' }],
  ])('with another %s replaces the mount', (_what, over) => {
    const plan = planMount({ ...bind, ...over }, view({ mounted: MOUNTED, record: ready(bind) }), kindOf)
    expect(plan).toMatchObject({ decision: 'replace', reason: 'the options changed' })
    expect(plan.steps.at(-1)).toEqual({ do: 'replace' })
  })

  it.each<[string, MountRequest, MountRequest]>([
    ['another pod name', bind, { ...bind, pod: 'n/q' }],
    [
      'another order of its mount options',
      { ...bind, mountOptions: ['noexec', 'noatime'] },
      { ...bind, mountOptions: ['noatime', 'noexec'] },
    ],
  ])('with only %s changes nothing', (_what, before, now) => {
    const plan = planMount(now, view({ mounted: MOUNTED, record: ready(before) }), kindOf)
    expect(plan).toEqual({ decision: 'ready', reason: 'the mount is there and as asked for', steps: [] })
  })

  it('records the mount that is replaced, responsive or not, so that the next call can detect a crash', () => {
    const record = ready(bind, { staging: 'old' })
    const { steps } = planMount(bind, view({ mounted: 'broken', mountId: BigInt(RECORDED.mountId), record }), kindOf)
    const written = steps.flatMap((step) => (step.do === 'record-ready' ? [step.record.replaces] : []))
    expect(written).toEqual([{ mountId: RECORDED.mountId, staging: 'old' }])
  })

  it.each<[string, Partial<MountPlanInput>]>([
    ['not recorded', { mounted: MOUNTED }],
    ['unresponsive', { mounted: 'broken' }],
    ['recorded for another mount', { mounted: { ...MOUNTED, mountId: 78n }, record: ready(bind) }],
  ])("does not detach what is %s outside of kubelet's FlexVolume directories", (_what, over) => {
    expect(rendered(planMount({ ...bind, directory: '/home' }, view(over), kindOf))).toEqual({
      decision: 'refuse',
      fault: expect.any(String),
      reason: "something else is mounted at /home, which is no volume directory of kubelet's: unmount it first",
      steps: [],
    })
  })

  it('is planned at any path that has no mount of another program', () => {
    const home = { ...bind, directory: '/home' }
    expect(planMount(home, view(), kindOf).decision).toBe('fresh')
    expect(planMount(home, view({ mounted: MOUNTED, record: ready(home) }), kindOf).decision).toBe('ready')
  })

  it('compares mount ids with all their 64 bits', () => {
    const mountId = 2n ** 63n + 1n
    const record = ready(bind, { mounted: { ...RECORDED, mountId: '9223372036854775809' } })
    expect(planMount(bind, view({ mounted: { ...MOUNTED, mountId }, record }), kindOf).decision).toBe('ready')
    const next = { ...MOUNTED, mountId: mountId - 1n }
    expect(planMount(bind, view({ mounted: next, record }), kindOf).decision).toBe('replace')
  })
})

it.each([
  ['/var/lib/kubelet/pods/8c03/volumes/modekeep~fs/v', true],
  ['/elsewhere/volumes/a~b/v', true],
  ['/pods/8c03/volumes/modekeep~fs', false],
  ['/pods/8c03/volumes/modekeep~fs/v/deeper', false],
  ['/pods/8c03/volumes/kubernetes.io/v', false],
  ['/home', false],
  ['/', false],
])('%s is a FlexVolume directory of kubelet: %s', (directory, is) => {
  expect(isKubeletVolume(directory)).toBe(is)
})

describe('a mount call for a tmpfs', () => {
  it('that exists already changes nothing', () => {
    const plan = planMount(tmpfs, view({ mounted: MOUNTED, record: ready(tmpfs), source: undefined }), kindOf)
    expect(plan.decision).toBe('ready')
    expect(plan.steps).toEqual([])
  })

  it('that exists with other options is refused, as its files would be lost', () => {
    const changed = { ...tmpfs, mountOptions: ['size=1m'] }
    const plan = planMount(changed, view({ mounted: MOUNTED, record: ready(tmpfs), source: undefined }), kindOf)
    expect(rendered(plan)).toEqual({
      decision: 'refuse',
      fault: expect.any(String),
      reason: 'the options changed, and replacing this tmpfs would lose its files: delete the pod to apply it',
      steps: [],
    })
  })

  it.each<[string, Partial<MountRequest>]>([
    ['a bind', { fsType: 'bind', source: { type: 'local', path: '/srv/a' } }],
    ['a read-only one', { readOnly: true }],
    ['one for another group', { ownership: 'walk', fsGroup: { ...FS_GROUP, groupId: 3000 } }],
  ])('that exists is not replaced for %s', (_what, over) => {
    const plan = planMount({ ...tmpfs, ...over }, view({ mounted: MOUNTED, record: ready(tmpfs) }), kindOf)
    expect(rendered(plan)).toEqual({
      decision: 'refuse',
      fault: expect.any(String),
      reason: 'the options changed, and replacing this tmpfs would lose its files: delete the pod to apply it',
      steps: [],
    })
  })

  it('replaces a bind mount, which keeps its files', () => {
    const seen = view({ mounted: MOUNTED, record: ready(bind), source: undefined })
    const plan = planMount(tmpfs, seen, kindOf)
    expect(plan).toMatchObject({ decision: 'replace', reason: 'the options changed' })
    expect(plan.steps.map((step) => step.do)).toEqual(REPLACE)
  })

  it.each<[string, Partial<MountPlanInput>]>([
    ['no record', {}],
    ['the record of a crashed call', { record: ready(tmpfs, { mounted: undefined }) }],
    ['the record of another mount', { record: ready(tmpfs, { mounted: { ...RECORDED, mountId: '78' } }) }],
    ['the record of another boot', { record: ready(tmpfs, { boot: 'boot-1' }) }],
    ['the record of another bind', { record: ready(bind, { mounted: { ...RECORDED, mountId: '78' } }) }],
  ])('is refused if a mount is there with %s, as it might be this tmpfs', (_what, over) => {
    expect(rendered(planMount(tmpfs, view({ mounted: MOUNTED, source: undefined, ...over }), kindOf))).toEqual({
      decision: 'refuse',
      fault: expect.any(String),
      reason:
        'a mount without a record is there, and if it is this tmpfs, replacing it would lose its files: delete the pod to mount a new one',
      steps: [],
    })
  })

  it.each<[string, Partial<MountPlanInput>]>([
    ['no record', {}],
    ['its record', { record: ready(tmpfs) }],
  ])('replaces an unresponsive mount with %s, as its files are unreadable', (_what, over) => {
    const plan = planMount(tmpfs, view({ mounted: 'broken', source: undefined, ...over }), kindOf)
    expect(plan).toMatchObject({ decision: 'replace', reason: 'what is mounted does not respond' })
    expect(plan.steps.map((step) => step.do)).toEqual(REPLACE)
  })

  it.each<[string, Partial<MountPlanInput>]>([
    ['not recorded', { mounted: MOUNTED }],
    ['unresponsive', { mounted: 'broken' }],
  ])('is refused for its directory first if what is %s is in no FlexVolume directory', (_what, over) => {
    const plan = planMount({ ...tmpfs, directory: '/home' }, view({ source: undefined, ...over }), kindOf)
    expect(rendered(plan)).toEqual({
      decision: 'refuse',
      fault: expect.any(String),
      reason: "something else is mounted at /home, which is no volume directory of kubelet's: unmount it first",
      steps: [],
    })
  })

  it('that was unmounted is made again', () => {
    const plan = planMount(tmpfs, view({ record: ready(tmpfs), source: undefined }), kindOf)
    expect(plan.decision).toBe('fresh')
    expect(plan.steps.map((step) => step.do)).toEqual(FRESH)
  })
})

describe('the plan of a mount has the ownership step for', () => {
  const OWN_VOLUME = ['record', 'make-tree', 'set-flags', 'own-volume', 'record-ready', 'attach']
  const OWN_ROOT = ['record', 'make-tree', 'set-flags', 'own-root', 'record-ready', 'attach']
  it.each<[string, MountRequest, string[], MountStep | undefined]>([
    ['no ownership', bind, FRESH, undefined],
    ['walk and no fsGroup', { ...walk, fsGroup: NO_FS_GROUP }, FRESH, undefined],
    ['walk and readOnly', { ...walk, readOnly: true }, FRESH, undefined],
    ['walk', walk, OWN_VOLUME, { do: 'own-volume', fsGroup: FS_GROUP, volume: VOLUME }],
    [
      'walk with group 0 and policy Always',
      { ...walk, fsGroup: { ...FS_GROUP, groupId: 0, changePolicy: 'Always' } },
      OWN_VOLUME,
      { do: 'own-volume', fsGroup: { ...FS_GROUP, groupId: 0, changePolicy: 'Always' }, volume: VOLUME },
    ],
    ['walk on a tmpfs', { ...tmpfs, ownership: 'walk' }, OWN_ROOT, { do: 'own-root', fsGroup: FS_GROUP }],
  ])('%s', (_what, request, steps, own) => {
    const source = request.fsType === 'tmpfs' ? undefined : SOURCE
    const plan = planMount(request, view({ source }), kindOf)
    expect(plan.steps.map((step) => step.do)).toEqual(steps)
    expect(plan.steps.find((step) => step.do.startsWith('own'))).toEqual(own)
  })
})

it('a mount of a tmpfs that crashed before it replaced another is completed', () => {
  const record = ready(tmpfs, { mounted: { ...RECORDED, mountId: '78' }, replaces: { mountId: '77' } })
  const plan = planMount(tmpfs, view({ mounted: MOUNTED, record, source: undefined }), kindOf)
  expect(plan.decision).toBe('replace')
})

it("an empty file outside of kubelet's volumes is never a mount point", () => {
  const elsewhere = { ...bind, directory: '/etc/allow' }
  expect(planMount(elsewhere, view({ target: 'file' }), kindOf).decision).toBe('refuse')
  expect(planMount(bind, view({ target: 'file' }), kindOf).decision).toBe('fresh')
})

describe('the steps of a mount', () => {
  it('record first, attach last, and have an inverse for every lasting effect', () => {
    const { steps } = planMount(walk, view(), kindOf)
    const record = createMountRecord(walk, BOOT, SOURCE)
    expect(steps).toEqual([
      { do: 'record', record, undo: { restore: undefined } },
      { do: 'make-tree', group: undefined, undo: 'close-tree' },
      { do: 'set-flags', set: 0x6, clear: 0 },
      { do: 'own-volume', fsGroup: FS_GROUP, volume: VOLUME },
      { do: 'record-ready', record, undo: { restore: undefined } },
      { do: 'attach', undo: 'detach' },
    ])
    expect(record).toMatchObject({
      volume: VOLUME,
      boot: BOOT,
    })
    expect(record.mounted).toBeUndefined()
  })

  it('keep the earlier record until the new mount is complete, and restore it if the replacement fails', () => {
    const record = ready(bind)
    const { steps } = planMount(walk, view({ mounted: MOUNTED, record }), kindOf)
    expect(steps.filter((step) => step.do.startsWith('record'))).toMatchObject([
      { do: 'record-ready', undo: { restore: record } },
    ])
  })

  it('set the flags of the options and of readOnly', () => {
    const { steps } = planMount({ ...bind, readOnly: true, mountOptions: ['noexec', 'noatime'] }, view(), kindOf)
    expect(steps[2]).toEqual({ do: 'set-flags', set: 0x1 | 0x2 | 0x4 | 0x8 | 0x10, clear: 0x70 })
  })

  it('are planned without changing their input', () => {
    const request = Object.freeze({ ...walk, mountOptions: Object.freeze(['noexec', 'noatime']) })
    const before = Object.freeze(view({ mounted: Object.freeze({ ...MOUNTED }), record: Object.freeze(ready(bind)) }))
    expect(planMount(request, before, kindOf)).toEqual(planMount(request, before, kindOf))
    expect(request.mountOptions).toEqual(['noexec', 'noatime'])
  })
})

describe('a mount whose volume has another group since an interrupted call', () => {
  it.each([
    [{ group: 2000, complete: true }, 'ready'],
    [{ group: 2000, complete: false }, 'replace'],
    // Directories were moved while it was walked to its end.
    [{ group: 2000, complete: false, hasEnded: true }, 'ready'],
    [{ group: 3000, complete: false, hasEnded: true }, 'replace'],
    [{ group: 3000, complete: true }, 'replace'],
    [undefined, 'ready'],
  ] as const)('is not ready: %j', (of, decision) => {
    const walked = of && {
      volume: 'volume',
      source: '/volume',
      groupAccess: 'keep' as const,
      restorePending: false,
      ...of,
    }
    const plan = planMount(walk, view({ mounted: MOUNTED, record: ready(walk), walked }), kindOf)
    expect(plan.decision).toBe(decision)
  })
})

describe('a mount with a daemon', () => {
  const at = { mounted: MOUNTED, boot: BOOT }
  const stepsOf = (plan: { steps: readonly { do: string }[] }) => plan.steps.map((step) => step.do)
  const served = ready(bind, { staging: '9-a' })

  it('counts as ready, and the plan has the remaining steps of a crashed call', () => {
    expect(planMount(bind, view({ ...at, record: served }), kindOf).steps).toEqual([])
    const bare = planMount(bind, view({ ...at, record: served, needsGuard: true }), kindOf)
    expect([bare.decision, stepsOf(bare)]).toEqual(['ready', ['guard']])
    const late = planMount(bind, view({ ...at, record: { ...served, replacedDaemons: ['8-b'] } }), kindOf)
    expect([late.decision, stepsOf(late)]).toEqual(['ready', ['end-daemons']])
  })

  it('is recognized by its daemon, also if a call crashed before its replacement, and by no other', () => {
    const daemonOf = (record: MountRecord) => {
      const { steps } = planMount({ ...bind, mountOptions: ['noexec'] }, view({ ...at, record }), kindOf)
      return steps.flatMap((step) => (step.do === 'record-ready' ? step.record.replaces : []))
    }
    const mounted = { ...RECORDED, mountId: '78' }
    const died = { ...served, mounted, staging: '10-c', replacedDaemons: ['8-b', '9-a'] }
    expect(daemonOf({ ...died, replaces: { mountId: '77', staging: '9-a' } })).toEqual([
      { mountId: '77', staging: '9-a' },
    ])
    expect(daemonOf({ ...died, replaces: { mountId: '77' } })).toEqual([{ mountId: '77' }])
  })

  it('keeps the recorded processes of existing daemons in the new record when the mount is replaced', () => {
    const daemon = (staging: string, pid: number) => ({ staging, processes: [{ pid, start: '100' }] })
    const daemons = [daemon('8-b', 8), daemon('9-a', 9)]
    const record = { ...served, replacedDaemons: ['8-b'], daemons: [daemon('7-c', 7), ...daemons] }
    const daemonsOf = (at: Partial<MountPlanInput>) =>
      planMount({ ...bind, mountOptions: ['noexec'] }, view(at), kindOf).steps.flatMap((step) =>
        step.do === 'record-ready' ? [step.record.daemons] : [],
      )
    expect(daemonsOf({ ...at, record })).toEqual([daemons])
    expect(daemonsOf({ ...at, record: { ...record, daemons: undefined } })).toEqual([undefined])
    expect(daemonsOf({ record: { ...record, boot: 'other' } })).toEqual([[]])
  })

  it('lists all earlier daemons of this boot in the new record when the mount is replaced', () => {
    const record = { ...served, replacedDaemons: ['8-b'] }
    const plan = planMount({ ...bind, mountOptions: ['noexec'] }, view({ ...at, record }), kindOf)
    expect(stepsOf(plan).at(-1)).toBe('end-daemons')
    expect(plan.steps).toContainEqual(
      expect.objectContaining({
        do: 'record-ready',
        record: expect.objectContaining({
          replacedDaemons: ['8-b', '9-a'],
          replaces: { mountId: '77', staging: '9-a' },
        }),
      }),
    )
    expect(stepsOf(planMount(bind, view({ record: { ...record, boot: 'other' } }), kindOf))).not.toContain(
      'end-daemons',
    )
  })
})
