import { describe, expect, it } from 'vitest'
import { healVerb } from '../../../src/cli/commands/heal.ts'
import type { MountStatus, VolumeStatus } from '../../../src/cli/commands/status-document.ts'
import { formatStatus } from '../../../src/cli/commands/status-text.ts'
import type { ContainerStatus } from '../../../src/cli/node-state/containers.ts'
import { MOUNT_STATES } from '../../../src/repair/state.ts'
import { splitLine } from '../../helpers/line.ts'

const NOW = Date.parse('2026-01-03T00:00:00Z')

const mount: MountStatus = {
  directory: '/pods/1/volumes/modekeep~fs/v',
  volume: 'v',
  pod: 'shop/cart',
  source: '/srv/data',
  fsType: 'bind',
  readOnly: false,
  group: 2000,
  ownership: 'walk',
  why: 'asked for',
  since: '2026-01-01T00:00:00Z',
  state: 'healthy',
  reason: '',
  code: null,
  repair: 'mounted',
  walk: null,
  unenforced: [],
  hiddenSubmounts: null,
  daemon: null,
}
const volume: VolumeStatus = {
  volume: 'v',
  source: '/srv/data',
  group: 2000,
  groupAccess: 'keep',
  complete: true,
  left: null,
  restorePending: false,
  mounts: 1,
  fault: null,
  name: null,
  changed: null,
  skipped: null,
  walk: null,
}
const shown = (mounts: MountStatus[], volumes: VolumeStatus[] = [], containers: ContainerStatus[] = []) =>
  formatStatus({ verb: 'status', mounts, volumes, containers, unrecorded: [], unreadable: [] }, NOW)
const texts = (...of: Parameters<typeof shown>) => shown(...of).map((line) => splitLine(line).text)

describe('the advice of status', () => {
  const next = (...of: Parameters<typeof shown>) => {
    const lines = texts(...of)
    const at = lines.indexOf('next')
    return at < 0 ? [] : lines.slice(at + 1)
  }

  it('is empty if all mounts are healthy or in progress', () => {
    expect(next([mount, { ...mount, state: 'in progress' }], [volume])).toEqual([])
  })

  it.each(MOUNT_STATES.filter((state) => !['healthy', 'in progress'].includes(state)))(
    'is printed for a mount that is %s',
    (state) => {
      expect(next([{ ...mount, state, reason: 'why' }])).toHaveLength(1)
    },
  )

  it('is one line for all mounts that heal can repair', () => {
    expect(
      next([
        { ...mount, state: 'missing' },
        { ...mount, state: 'stale' },
        { ...mount, state: 'stale' },
      ]),
    ).toEqual(['  "modekeep heal" repairs what is missing, stale; with --dry-run it says what it would do'])
  })

  it('is one line about the plugin for all mount options that containers lack', () => {
    const lines = next([
      { ...mount, unenforced: ['nosuid', 'nodev'] },
      { ...mount, unenforced: ['nosuid', 'noexec'] },
    ])
    expect(lines).toEqual([expect.stringMatching(/do not have nosuid, nodev, noexec of .*start "modekeep nri"/)])
  })

  it('names restore with the volume name for an incomplete volume, and doctor for unreadable records', () => {
    expect(next([], [{ ...volume, restorePending: true, mounts: 0 }])[0]).toContain('"modekeep restore v"')
    expect(next([], [{ ...volume, complete: false }])[0]).toContain('"modekeep restore v"')
    expect(next([], [{ ...volume, complete: false, left: 2 }])[0]).toContain('"modekeep restore v --force"')
    expect(next([], [{ ...volume, complete: false, left: 0 }])).toEqual([])
    expect(next([], [{ ...volume, fault: 'damaged' }])[0]).toContain('"modekeep doctor"')
  })

  it('for the pending restore of an unmounted server volume begins with a mount, without which restore is refused', () => {
    const text = `text-${'0'.repeat(40)}`
    const exported = { ...volume, volume: text, source: 'server:/exports/a' }
    expect(next([], [{ ...exported, restorePending: true, mounts: 0 }])).toEqual([
      `  mount server:/exports/a by a pod or by hand, then "modekeep restore ${text}" puts the volume back, which its last unmount could not`,
    ])
    expect(next([], [{ ...exported, complete: false, mounts: 0 }])[0]).toMatch(/mount server:\/exports\/a by a pod/)
    expect(next([], [{ ...exported, complete: false }])[0]).toMatch(/^ *"modekeep restore text-/)
  })
})

describe('the text of status', () => {
  it('names mounts without a record, and volumes whose root a user changed', () => {
    const unrecorded = [{ directory: '/pods/2/volumes/modekeep~fs/v', reason: 'it is mounted without a record' }]
    const changed = { ...volume, changed: 'a user changed its root' }
    const lines = formatStatus(
      { verb: 'status', mounts: [], volumes: [changed], containers: [], unrecorded, unreadable: [] },
      NOW,
    )
    expect(lines.map((line) => splitLine(line).text)).toEqual([
      'modekeep has nothing mounted on this node',
      '',
      'volume  group  mounts  state    source',
      'v       2000   1       changed  /srv/data',
      '  a user changed its root',
      '',
      'mounts without a record',
      '/pods/2/volumes/modekeep~fs/v is unknown: it is mounted without a record [mount-unrecorded]',
      '',
      'next',
      '  the line below each mount or volume that is changed or partial names the command that gives it its group again',
      '  heal leaves what is unknown or without a record: the reason beside it says what to do',
    ])
  })

  it('lists containers with and without their group, with the reason', () => {
    const mapped: ContainerStatus = {
      container: 'c0ffee',
      name: 'app',
      pod: 'shop/web-0',
      volume: 'pvc-1',
      destination: '/data',
      source: '/var/lib/kubelet/pods/1/volumes/kubernetes.io~csi/pvc-1/mount',
      onDisk: 500,
      isMember: true,
      group: 2000,
      state: 'mapped',
      reason: '',
      since: new Date(NOW - 5000).toISOString(),
    }
    const without: ContainerStatus = { ...mapped, volume: 'fat', onDisk: null, state: 'without', reason: 'is on vfat' }
    expect(texts([], [], [mapped, without])).toEqual([
      'modekeep has nothing mounted on this node',
      '',
      'container       volume  on disk  shown  age  state',
      'shop/web-0/app  pvc-1   500      2000   5s   mapped',
      'shop/web-0/app  fat     -        -      5s   without',
      '  is on vfat',
    ])
    const untold = texts([], [], [{ ...mapped, isMember: null }])
    expect(untold.slice(4)).toEqual([
      '  The runtime does not tell whether their processes are in the groups shown:',
      "  each has to be in its pod's supplementalGroups, or be its fsGroup.",
    ])
    expect(texts([], [], [{ ...without, isMember: null }])).toHaveLength(5)
  })

  it('reports that nothing is mounted', () => {
    expect(texts([])).toEqual(['modekeep has nothing mounted on this node'])
  })

  it('has a row for each mount, and its details below', () => {
    expect(texts([mount])).toEqual([
      'pod        source     group  ownership  age  state',
      'shop/cart  /srv/data  2000   walk       2d   healthy',
      '  /pods/1/volumes/modekeep~fs/v',
    ])
    const fuse: MountStatus = {
      ...mount,
      pod: '',
      source: '',
      fsType: 'tmpfs',
      group: null,
      since: null,
      state: 'stale',
      reason: 'its daemon is dead',
      why: 'idmap is refused',
      walk: { pid: 7, visited: 3, changed: 2 },
      daemon: { pid: null, state: 'dead' },
    }
    expect(texts([fuse]).slice(1, 7)).toEqual([
      '-    tmpfs   -      walk       -    stale',
      '  /pods/1/volumes/modekeep~fs/v',
      '  ownership: idmap is refused',
      '  a walk or restore is under way (process 7): 3 looked at, 2 changed',
      '  daemon: dead',
      '  its daemon is dead',
    ])
    expect(shown([fuse]).filter((line) => splitLine(line).style === 'notice')).toHaveLength(3)
  })

  it.each<[string, Partial<VolumeStatus>]>([
    ['walked', {}],
    ['walked', { restorePending: true }],
    ['restore pending', { restorePending: true, mounts: 0 }],
    ['interrupted', { complete: false }],
    ['partly restored', { complete: false, left: 2, mounts: 0 }],
    ['restored', { complete: false, left: 0, mounts: 0 }],
    ['recorded', { group: null, groupAccess: null }],
    ['in progress', { walk: { pid: null, visited: 0, changed: 0 } }],
  ])('shows the state of a volume as %s: %j', (state, more) => {
    const lines = texts([mount], [{ ...volume, ...more }])
    expect(lines[5]).toMatch(new RegExp(`^v +\\S+ +\\d +${state} +/srv/data$`))
  })

  it.each([
    [999, '0s'],
    [59_999, '59s'],
    [60_000, '1m'],
    [3_600_000, '1h'],
    [-5, '0s'],
  ])('shows an age of %i ms as %s', (age, text) => {
    expect(texts([{ ...mount, since: new Date(NOW - age).toISOString() }])[1]).toMatch(new RegExp(` ${text} +healthy$`))
  })
})

describe('the text of heal', () => {
  const found = { directory: '/a', pod: '', reason: 'it is not mounted' }
  const mounts = [
    { ...found, state: 'healthy', action: 'none', reason: '' },
    { ...found, state: 'missing', action: 'mounted' },
    { ...found, state: 'stale', action: 'failed' },
  ] as const

  it('counts healthy mounts, and lists the actions for the others', () => {
    const lines = healVerb
      .lines({ verb: 'heal', isDry: false, mounts: [...mounts], subPaths: [], containers: [] })
      .map(splitLine)
    expect(lines.map(({ text }) => text)).toEqual([
      '1 of 3 mounts healthy',
      'missing  mounted  /a  it is not mounted',
      'stale    failed   /a  it is not mounted',
    ])
  })

  it('names containers that run without their group, and the remedy', () => {
    const why = { reason: 'nobody was asked', remedy: 'delete the pod' }
    const about = { container: 'c0ffee', name: 'app', pod: 'shop/web-0', volume: 'data', group: 2000 }
    const without = { ...about, ...why, state: 'without', action: 'none' } as const
    const lines = healVerb
      .lines({ verb: 'heal', isDry: false, mounts: [], subPaths: [], containers: [without] })
      .map(splitLine)
    expect(lines.map(({ text }) => text)).toEqual([
      '0 of 0 mounts healthy',
      'without  none  shop/web-0/app (volume data)  nobody was asked; delete the pod',
    ])
  })

  it('lists the actions of a dry run as actions that heal would take', () => {
    const lines = healVerb
      .lines({ verb: 'heal', isDry: true, mounts: [...mounts], subPaths: [], containers: [] })
      .map(splitLine)
    expect(lines[0]?.text).toBe('1 of 3 mounts healthy. Nothing was changed.')
    expect(lines[1]?.text).toContain('would be mounted')
    expect(lines[2]?.text).toMatch(/^stale +failed/)
  })
})
