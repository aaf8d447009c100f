import { beforeEach, describe, expect, it } from 'vitest'
import type { Daemon, Host } from '../../src/kernel/host.ts'
import { type MountPoint, openMountPoint, statMountPointUnsynced } from '../../src/kernel/mount-table/mount-point.ts'
import { attachTreeAtPoint } from '../../src/mount/attach.ts'
import { type MountRecord, mountRecords } from '../../src/state/mount-record.ts'
import type { Session } from '../../src/state/session.ts'
import {
  attachGuardMount,
  endHangingDaemon,
  endReplacedDaemons,
  endStoppedDaemons,
  findHangingDaemon,
  isDaemonStopped,
  statServedMount,
} from '../../src/volume/daemon.ts'
import { createUnresponsiveSourceCheck } from '../../src/volume/unresponsive-source.ts'
import { READY } from '../helpers/mount-records.ts'
import { memoryStage, type Stage } from '../helpers/stage.ts'
import { makeTree } from '../helpers/tree.ts'

/** A node with these daemons, by their staging directories. */
function nodeWith(states: Record<string, string>): { session: Session; killed: string[] } {
  const session = memoryStage().session()
  const killed: string[] = []
  const nameIn = (path: string) => path.split('/').find((part) => part in states) ?? ''
  const daemons = {
    ...session.host.daemons,
    find: (argument: string) => {
      const state = states[nameIn(argument)]
      return state === undefined ? undefined : { pid: 7, state }
    },
    kill: (directory: string) => void killed.push(nameIn(directory)),
  }
  return { session: { ...session, host: { ...session.host, daemons } }, killed }
}

it('a daemon counts as stopped by a signal or a debugger, and not if it sleeps or has ended', () => {
  expect(['T', 't', 'S', 'D', 'R'].filter((state) => isDaemonStopped({ pid: 1, state }))).toEqual(['T', 't'])
  expect(isDaemonStopped(undefined)).toBe(false)
})

it('an unmount ends stopped daemons and reports running daemons', () => {
  const { session, killed } = nodeWith({ old: 'T', writing: 'S', own: 't' })
  const left = endStoppedDaemons(session, { staging: 'own', replacedDaemons: ['old', 'writing', 'gone'] })
  expect(left).toEqual(['writing'])
  expect(killed).toEqual(['old', 'own'])
})

it('a daemon is searched only among the recorded processes, and no other process is ended', () => {
  const session = memoryStage().session()
  const asked: unknown[] = []
  const daemons = {
    ...session.host.daemons,
    find: (...given: unknown[]) => {
      asked.push(given)
      return { pid: 7, state: 'T' }
    },
    kill: (...given: unknown[]) => void asked.push(given),
  }
  const known = [{ pid: 7, start: '100' }]
  endStoppedDaemons(
    { ...session, host: { ...session.host, daemons } },
    { staging: 'own', replacedDaemons: ['old'], daemons: [{ staging: 'own', processes: known }] },
  )
  const place = `${session.config.stateDir}/staging`
  expect(asked).toEqual([
    [`${place}/old/mount`, undefined],
    [`${place}/old`, undefined],
    [`${place}/own/mount`, known],
    [`${place}/own`, known],
  ])
})

it('for a mount without a daemon no process is searched or ended', () => {
  const { session, killed } = nodeWith({ another: 'T' })
  expect(endStoppedDaemons(session, { staging: undefined, replacedDaemons: [] })).toEqual([])
  expect(killed).toEqual([])
})

const PLACE = '/node/pods/p/volumes/modekeep~fs/v'
const NOT_WRITTEN = 'it is ended, with what it has not written yet'

describe('a mount of a daemon or a server', () => {
  let stage: Stage
  let point: MountPoint
  beforeEach(() => {
    stage = memoryStage()
    makeTree(stage.fs, PLACE, [])
    point = openMountPoint(stage.host, PLACE) ?? expect.unreachable()
  })

  const world = () => stage.world ?? expect.unreachable()
  function mountTree(): string {
    attachTreeAtPoint(stage.host, point, stage.host.mounts.createTree('fuse', []))
    const there = statMountPointUnsynced(stage.host, point)
    return typeof there === 'object' ? String(there.mountId) : expect.unreachable()
  }
  const record = (mountId: string, over: Partial<MountRecord> = {}): MountRecord => ({
    ...READY,
    directory: PLACE,
    request: { ...READY.request, fsType: 'fuse.sshfs', source: { type: 'text', text: 'me@host:/a' } },
    mounted: { mountId, device: 5, namespace: 'memory', since: 1 },
    staging: 'own',
    ...over,
  })
  const nfs = (mountId: string) =>
    record(mountId, {
      staging: undefined,
      request: { ...READY.request, fsType: 'nfs', source: { type: 'export', server: 'host', path: '/a' } },
    })

  /** A node whose daemons and servers answer, or do not; `asked` says for how long they were waited for. */
  function served({ answers = true, daemon }: { answers?: boolean; daemon?: Daemon } = {}) {
    const [asked, looked, killed]: [number[], string[], string[]] = [[], [], []]
    const { inodes } = stage.host
    const host: Host = {
      ...stage.host,
      inodes: {
        ...inodes,
        statEntry(parent, name) {
          looked.push(`${inodes.pathOf(parent)}/${Buffer.from(name)}`)
          return inodes.statEntry(parent, name)
        },
        queryEntry(parent, name) {
          looked.push(`${inodes.pathOf(parent)}/${Buffer.from(name)}, whatever is cached`)
          return inodes.queryEntry(parent, name)
        },
      },
      daemons: {
        find: (argument) => (argument === `${stage.config.stateDir}/staging/own/mount` ? daemon : undefined),
        answers: async (_parent, _name, patience) => {
          asked.push(patience)
          return answers
        },
        lookUp: async () => 'found',
        below: () => [],
        kill: (directory) => void killed.push(directory),
      },
    }
    return { session: { ...stage.session(), host } satisfies Session, asked, looked, killed }
  }
  const RUNS: Daemon = { pid: 7, state: 'S' }
  const STOPPED: Daemon = { pid: 7, state: 'T' }

  it("is not delayed before its unmount if its daemon responds, within a helper's time limit", async () => {
    const there = record(mountTree())
    for (const [daemon, patience] of [
      [RUNS, 60_000],
      [STOPPED, 5000],
    ] as const) {
      const { session, asked } = served({ daemon })
      expect(await findHangingDaemon(session, point, there)).toBeUndefined()
      expect(asked).toEqual([patience])
    }
    expect(stage.warnings).toEqual([])
  })

  it.each([
    ['is stopped', STOPPED, `its daemon is stopped: ${NOT_WRITTEN}`],
    ['does not respond', RUNS, `its daemon has not responded for 60 s (helperTimeoutSeconds): ${NOT_WRITTEN}`],
  ])(
    'has its daemon ended before its replacement if it %s, and the message names the lost data',
    async (_what, daemon, warning) => {
      const there = record(mountTree())
      const { session, killed } = served({ daemon, answers: false })
      expect(await findHangingDaemon(session, point, there)).toBe('own')
      expect(killed).toEqual([])
      await endHangingDaemon(session, point, there)
      expect(killed).toEqual([`${stage.config.stateDir}/staging/own`])
      expect(stage.warnings).toEqual([warning, warning])
    },
  )

  it("has the existing mount's daemon checked while its replacement is recorded", async () => {
    const replaces = { mountId: mountTree(), staging: 'before' }
    const { session } = served({ answers: false })
    expect(await findHangingDaemon(session, point, record('999', { replaces }))).toBe('before')
  })

  it('without a daemon waits for no process, and none is ended', async () => {
    const { session, asked, killed } = served({ answers: false, daemon: RUNS })
    expect(await findHangingDaemon(session, point, record('1'))).toBeUndefined()
    const mountId = mountTree()
    expect(await findHangingDaemon(session, point, undefined)).toBeUndefined()
    const bind = { ...READY, directory: PLACE, mounted: { ...READY.mounted, mountId } } as MountRecord
    expect(await findHangingDaemon(session, point, bind)).toBeUndefined()
    await endHangingDaemon(session, point, bind)
    expect([asked, killed, stage.warnings]).toEqual([[], [], []])
  })

  it('whose server does not respond is unmounted with a warning', async () => {
    const there = nfs(mountTree())
    const { session, asked } = served({ answers: false })
    expect(await findHangingDaemon(session, point, there)).toBeUndefined()
    expect(asked).toEqual([5000])
    expect(stage.warnings).toEqual([expect.stringMatching(/^its server does not respond: the kernel may wait/)])
  })

  it('is queried for its health only after its daemon has ended', async () => {
    const there = record(mountTree())
    const living = served({ daemon: STOPPED })
    expect(await statServedMount(living.session, point, there)).toEqual({
      stat: statMountPointUnsynced(stage.host, point),
    })
    expect([living.looked, living.asked]).toEqual([[], []])
    const ended = served()
    await statServedMount(ended.session, point, there)
    expect(ended.looked).toEqual([`${PLACE}, whatever is cached`])
  })

  it('has an unknown health while its server does not respond, and gets no further request', async () => {
    const there = nfs(mountTree())
    const { session, looked } = served({ answers: false })
    const healthUnknownReason = 'health unknown: the server does not respond'
    expect(await statServedMount(session, point, there)).toEqual({
      stat: statMountPointUnsynced(stage.host, point),
      healthUnknownReason,
    })
    expect(looked).toEqual([])
    const { session: well, looked: asked } = served()
    expect(await statServedMount(well, point, there)).not.toHaveProperty('healthUnknownReason')
    expect(asked).toEqual([PLACE])
  })

  it.each([
    ['nfs4', 1, true],
    ['fuse.sshfs', 1, true],
    ['ext4', 0, false],
  ])('has an unresponsive %s checked %i times for any number of directories', async (fsType, times, silent) => {
    makeTree(stage.fs, '/srv/share', [])
    const { session, asked } = served({ answers: false })
    const share = openMountPoint(stage.host, '/srv/share') ?? expect.unreachable()
    attachTreeAtPoint(stage.host, share, stage.host.mounts.createTree('nfs', []))
    const { mounts } = stage.host
    const table = () => mounts.table().replaceAll(/( \/srv\/share .*) - memory /g, `$1 - ${fsType} `)
    const isSilent = createUnresponsiveSourceCheck({
      ...session,
      host: { ...session.host, mounts: { ...mounts, table } },
    })
    for (const part of ['a', 'b']) {
      const request = { ...READY.request, source: { type: 'local', path: `/srv/share/${part}` } } as const
      expect(await isSilent({ ...READY, request })).toBe(silent)
    }
    expect(asked).toHaveLength(times)
    expect(await isSilent(READY)).toBe(false)
    expect(asked).toHaveLength(times)
  })

  describe('has a read-only guard mount beneath', () => {
    const changes = () => world().actions.map((action) => action.replace(/^(create-tree tmpfs) .*/, '$1'))
    /** The table rows that the kernel writes for the created trees. */
    function withTable(): Host {
      const guards = new Set<number>()
      const { inodes, mounts } = stage.host
      return {
        ...stage.host,
        mounts: {
          ...mounts,
          createTree(fsType, options) {
            const tree = mounts.createTree(fsType, options)
            if (options.includes('nr_inodes=1')) guards.add(inodes.stat(tree).mountId)
            return tree
          },
          table: () =>
            mounts
              .table()
              .split('\n')
              .map((row) =>
                guards.has(Number.parseInt(row, 10)) ? row.replace(/ - .*/, ' - tmpfs modekeep ro,nr_inodes=1') : row,
              )
              .join('\n'),
        },
      }
    }

    it('that is read-only before it becomes visible, and is attached once', () => {
      const host = withTable()
      const mountId = mountTree()
      world().actions.length = 0
      attachGuardMount(host, point)
      expect(changes()).toEqual(['create-tree tmpfs', 'set-flags 1 0', 'attach-beneath'])
      expect(statMountPointUnsynced(host, point)).toMatchObject({ mountId: Number(mountId) })
      expect(stage.host.mounts.table().match(/modekeep~fs/g)).toHaveLength(2)
      world().actions.length = 0
      attachGuardMount(host, point)
      expect(world().actions).toEqual([])
    })

    it('before it is mounted, and every handle is closed', () => {
      const handles = world().handles.size
      attachGuardMount(withTable(), point)
      expect(changes()).toEqual(['create-tree tmpfs', 'set-flags 1 0', 'attach'])
      expect(world().handles.size).toBe(handles)
    })

    it('unless the kernel cannot attach one', () => {
      const mountId = mountTree()
      const { mounts } = stage.host
      attachGuardMount({ ...stage.host, mounts: { ...mounts, attachBeneath: () => false } }, point)
      expect(statMountPointUnsynced(stage.host, point)).toMatchObject({ mountId: Number(mountId) })
      expect(stage.host.mounts.table().match(/modekeep~fs/g)).toHaveLength(1)
    })
  })
})

describe('after a replacement', () => {
  const left = (session: Session) => mountRecords.read(session, PLACE)?.replacedDaemons
  const replaced = (states: Record<string, string>, replacedDaemons: string[]) => {
    const { session, killed } = nodeWith(states)
    mountRecords.write(session, { ...READY, directory: PLACE, staging: 'own', replacedDaemons })
    return { session, killed }
  }

  it('stopped and ended daemons are removed from the mount record, and the serving daemon stays', () => {
    const { session, killed } = replaced({ old: 'T', writing: 'S', own: 'T' }, ['old', 'writing', 'gone'])
    endReplacedDaemons(session, PLACE)
    expect(killed).toEqual(['old'])
    expect(left(session)).toEqual(['writing'])
  })

  it('the mount record is not written if all its daemons run, or if no record exists', () => {
    const { session } = replaced({ writing: 'S' }, ['writing'])
    const { files } = session.host
    const written: string[] = []
    const host = { ...session.host, files: { ...files, replace: (path: string) => void written.push(path) } }
    for (const path of [PLACE, '/node/pods/another']) endReplacedDaemons({ ...session, host }, path)
    expect(written).toEqual([])
    expect(left(session)).toEqual(['writing'])
  })

  it('a daemon that cannot be ended causes a warning, and the next call tries again', () => {
    const { session } = replaced({ old: 'T' }, ['old'])
    const warnings: string[] = []
    const kill = () => {
      throw new Error('EPERM')
    }
    const host = { ...session.host, daemons: { ...session.host.daemons, kill } }
    endReplacedDaemons({ ...session, host, warn: (message) => void warnings.push(message) }, PLACE)
    expect(warnings).toEqual(['daemons of what was mounted before: EPERM'])
    expect(left(session)).toEqual(['old'])
  })
})
