import { describe, expect, it } from 'vitest'
import type { MountRequest } from '../../src/config/mount-request.ts'
import { planGroup, type VolumeKindFacts } from '../../src/fsgroup/group-plan.ts'
import type { MountPlanInput } from '../../src/mount/observe.ts'
import { planMount } from '../../src/mount/plan.ts'
import { createMountRecord, type MountRecord } from '../../src/state/mount-record.ts'
import type { SourceView } from '../../src/volume/detached-tree.ts'
import { BIND_REQUEST, FS_GROUP, MOUNTED, NO_FS_GROUP } from '../helpers/mount-records.ts'
import { rendered } from '../helpers/rendered.ts'

const ROOT = { device: 5, inode: 2n, group: 7 }
const DIRECTORY: SourceView = { root: ROOT, volume: 'v', path: '/srv/a', isDirectory: true }
const BIND: VolumeKindFacts = { persistent: true, walk: true }
const FILE: SourceView = { ...DIRECTORY, path: '/srv/a/f', isDirectory: false }
const ASKED: MountRequest = { ...BIND_REQUEST, ownership: 'auto' }
const view = (over: Partial<MountPlanInput> = {}): MountPlanInput => ({
  mounted: undefined,
  mountId: undefined,
  target: 'directory',
  record: undefined,
  needsGuard: false,
  source: DIRECTORY,
  boot: 'b',
  walked: undefined,
  ...over,
})
const walk = { do: 'own-volume', fsGroup: FS_GROUP, volume: 'v' }
const GROUP_0 = { ...FS_GROUP, groupId: 0 }
const map = { do: 'map-group', from: undefined, to: 2000, volume: 'v' }

describe('the group of a pod', () => {
  it.each<[string, Partial<MountRequest>, object[]]>([
    ['is not applied without ownership', { ownership: 'none' }, []],
    ['is not applied if the pod requests none', { fsGroup: NO_FS_GROUP }, []],
    ['is applied by a walk', { ownership: 'walk' }, [walk]],
    ['is not applied by a walk of a read-only volume', { ownership: 'walk', readOnly: true }, []],
    ['is either mapped or refused with idmap', { ownership: 'idmap' }, [{ ...map, otherwise: 'refuse' }]],
    [
      'is mapped from the group that idmapFrom names',
      { ownership: 'idmap', idmapFrom: 0 },
      [{ ...map, from: 0, otherwise: 'refuse' }],
    ],
    ['is mapped for a read-only volume too', { ownership: 'idmap', readOnly: true }, [{ ...map, otherwise: 'refuse' }]],
    ['is mapped with auto, or else walked for', {}, [{ ...map, otherwise: walk }]],
    ['is mapped with auto and read-only, or else not applied', { readOnly: true }, [{ ...map, otherwise: 'nothing' }]],
    ['needs no mapping if it is group 0', { fsGroup: GROUP_0 }, []],
    ['is walked for if it is group 0', { ownership: 'walk', fsGroup: GROUP_0 }, [{ ...walk, fsGroup: GROUP_0 }]],
  ])('%s', (_what, over, steps) => {
    expect(planGroup({ ...ASKED, ...over }, view().source, BIND)).toMatchObject({ steps })
  })

  it('is applied by a walk with auto if the pod has a user namespace, and idmap is refused', () => {
    const { source } = view()
    expect(planGroup(ASKED, source, BIND, true)).toEqual({ steps: [walk] })
    expect(rendered(planGroup({ ...ASKED, ownership: 'idmap' }, source, BIND, true))).toEqual({
      steps: [],
      refusal: expect.stringMatching(/hostUsers: false.*use "walk", or "auto"/),
    })
    expect(planGroup({ ...ASKED, ownership: 'idmap', fsGroup: GROUP_0 }, source, BIND, true)).toEqual({ steps: [] })
  })

  it('is set only on the root of a tmpfs', () => {
    const own = { do: 'own-root', fsGroup: FS_GROUP }
    const none = view({ source: undefined })
    expect(planGroup({ ...ASKED, ownership: 'walk' }, none.source, BIND).steps).toEqual([own])
    expect(planGroup(ASKED, none.source, BIND).steps).toEqual([{ ...map, volume: undefined, otherwise: own }])
  })

  it('of a file volume is mapped, and a walk is refused', () => {
    const file = view({ source: FILE })
    expect(planGroup(ASKED, file.source, BIND)).toEqual({ steps: [{ ...map, otherwise: 'refuse' }] })
    expect(rendered(planGroup({ ...ASKED, ownership: 'walk' }, file.source, BIND).refusal)).toMatch(
      /"subPath" names is not a directory.*"idmap"/,
    )
    const plan = planMount({ ...ASKED, ownership: 'walk' }, file, () => BIND)
    expect(plan).toMatchObject({ decision: 'refuse', steps: [] })
  })
})

it('a group that is not applied because the volume is read-only is reported with the remedy', () => {
  const asked: MountRequest = { ...ASKED, ownership: 'walk', readOnly: true }
  expect(planGroup(asked, view().source, BIND).withheld).toMatch(/^the volume is read-only, .*"idmap"/)
  expect(planMount(asked, view(), () => BIND).steps[1]).toMatchObject({ do: 'make-tree', withheld: expect.any(String) })
})

describe('the group of a volume on a server or daemon', () => {
  const remote: VolumeKindFacts = { persistent: true, walk: 'its server decides about groups', groupOptions: () => [] }
  const source: SourceView = { root: undefined, volume: 'text', path: '//s/a', isDirectory: true }

  it('is set by mount options with auto', () => {
    expect(planGroup(ASKED, view({ source }).source, remote)).toEqual({ steps: [], byOption: 2000 })
    const { steps } = planMount(ASKED, view({ source }), () => remote)
    expect(steps[1]).toEqual({ do: 'make-tree', group: 2000, undo: 'close-tree' })
  })

  it('is never applied by a walk', () => {
    const asked: MountRequest = { ...ASKED, fsType: 'cifs', ownership: 'walk' }
    expect(rendered(planGroup(asked, view({ source }).source, remote).refusal)).toBe(
      'option "ownership" is "walk", but on "cifs" its server decides about groups: use "auto", which gives the group by mount options',
    )
    const none: VolumeKindFacts = { persistent: true, walk: remote.walk }
    expect(rendered(planGroup(asked, view({ source }).source, none).refusal)).toMatch(/use "none", or "idmap"$/)
  })
})

describe('a mapped mount', () => {
  const mounted = { mountId: 9n, device: 5, inode: 2n, isDirectory: true }
  const decide = (over: Partial<MountRequest>, group: number) => {
    const asked = { ...ASKED, ...over }
    const now: MountRecord = {
      ...createMountRecord(asked, 'b', DIRECTORY),
      given: { by: 'idmap', from: 7, why: 'asked for' },
      mounted: { ...MOUNTED, mountId: '9' },
    }
    return planMount(
      asked,
      view({ mounted, record: now, source: { ...DIRECTORY, root: { ...ROOT, group } } }),
      () => BIND,
    )
  }

  it('is ready while the group on disk is the mapped one', () => {
    expect(decide({}, 7).decision).toBe('ready')
  })

  it('is replaced if the group on disk has changed', () => {
    expect(decide({}, 8)).toMatchObject({ decision: 'replace', reason: 'the volume has another group on disk now' })
    expect(decide({ idmapFrom: 7 }, 8).decision).toBe('ready')
  })
})

describe("the volume's backing file system", () => {
  const steps = (over: Partial<MountPlanInput>) =>
    planMount({ ...ASKED, ownership: 'none' }, view(over), () => BIND)
      .steps.map((step) => ('type' in step ? `${step.do} ${step.type}` : step.do))
      .filter((step) => /target|attach|replace|detach/.test(step))
  const onDirectory = { mountId: 9n, device: 5, inode: 3n, isDirectory: true }
  const onFile = { ...onDirectory, isDirectory: false }

  it.each<[string, Partial<MountPlanInput>, string[]]>([
    ["kubelet's directory", {}, ['attach']],
    ['a file in place of it', { source: FILE }, ['set-target file', 'attach']],
    ['a file from an earlier call', { source: FILE, target: 'file' }, ['attach']],
    ['a directory in place of such a file', { target: 'file' }, ['set-target directory', 'attach']],
    ['a directory if a call crashed between the two', { target: 'missing' }, ['set-target directory', 'attach']],
    ['the one below the earlier mount', { mounted: onDirectory }, ['replace']],
    ['the one below the earlier file mount', { mounted: onFile, source: FILE }, ['replace']],
    ['a file after a directory', { mounted: onDirectory, source: FILE }, ['detach-all', 'set-target file', 'attach']],
    ['a directory after a file', { mounted: onFile }, ['detach-all', 'set-target directory', 'attach']],
    ['a directory if the mount does not respond', { mounted: 'broken' }, ['replace']],
  ])('is %s', (_what, over, expected) => {
    expect(steps(over)).toEqual(expected)
  })
})
