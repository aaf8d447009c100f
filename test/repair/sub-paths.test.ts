import { beforeEach, describe, expect, it } from 'vitest'
import { type Handle, type Host, SystemError } from '../../src/kernel/host.ts'
import { type MountPoint, openMountPoint } from '../../src/kernel/mount-table/mount-point.ts'
import { readMountLayers } from '../../src/kernel/mount-table/mountinfo.ts'
import { attachTreeAtPoint } from '../../src/mount/attach.ts'
import { healSubPaths, listSubPathDirectories } from '../../src/repair/sub-paths.ts'
import { tryAcquireNodeLock } from '../../src/state/locks.ts'
import { memoryStage, type Stage } from '../helpers/stage.ts'
import { makeTree } from '../helpers/tree.ts'
import type { MemoryWorld } from '../memory-host/world.ts'

const KUBELET = '/node/kubelet'
const VOLUME = `${KUBELET}/pods/7d2e/volumes/kubernetes.io~configmap/settings`
const AT = `${KUBELET}/pods/7d2e/volume-subpaths/settings/web`
const ONE = '..2026_11_21_10_20_30.1'
const TWO = '..2026_11_21_10_20_31.2'
const STALE = 'its source was deleted when the volume changed'

let stage: Stage
let world: MemoryWorld
let point: MountPoint
beforeEach(() => {
  stage = memoryStage()
  world = stage.world ?? expect.unreachable()
  write(ONE, ['file config 0644', 'file dir/config 0644'])
  for (const name of ['config', 'dir']) stage.fs.symlinkSync(`..data/${name}`, `${VOLUME}/${name}`)
  stage.host = { ...stage.host, ...kernelOf(stage.host) }
  point = bind(0, 'config')
})

/** memfs keeps no inode without a name: what is deleted moves here. */
const GONE = '/gone'

/** As the kernel writes what is deleted, and the flags of kubelet's binds. */
function kernelOf({ inodes, mounts }: Host): Pick<Host, 'inodes' | 'mounts'> {
  const deleted = (line: string) => line.replace(/ \/gone(\S+)/, ' $1//deleted')
  const isGone = (handle: Handle) => world.at(handle).path.startsWith(`${GONE}/`)
  return {
    inodes: { ...inodes, pathOf: (handle) => `${inodes.pathOf(handle)}${isGone(handle) ? ' (deleted)' : ''}` },
    mounts: {
      ...mounts,
      table: () =>
        mounts
          .table()
          .split('\n')
          .map(deleted)
          .join('\n')
          .replaceAll(/ rw - /g, ' ro,nosuid,relatime - '),
    },
  }
}

/** As kubelet's atomic writer: a new directory, and the link to it. */
function write(dated: string, tree: string[]): void {
  makeTree(stage.fs, `${VOLUME}/${dated}`, tree)
  stage.fs.symlinkSync(dated, `${VOLUME}/..data`)
}

/** The other configuration; the first one's directory is deleted, what is bound of it lives on. */
function flip(tree = ['file config 0644', 'file dir/config 0644']): void {
  stage.fs.unlinkSync(`${VOLUME}/..data`)
  write(TWO, tree)
  makeTree(stage.fs, `${GONE}${VOLUME}`, [])
  stage.fs.renameSync(`${VOLUME}/${ONE}`, `${GONE}${VOLUME}/${ONE}`)
  for (const mount of world.mounts) {
    if (mount.root.startsWith(`${VOLUME}/${ONE}/`)) mount.root = `${GONE}${mount.root}`
  }
}

/** As kubelet binds a subPath of a container. */
function bind(index: number, subPath: string): MountPoint {
  const path = `${AT}/${index}`
  if (subPath === 'dir') makeTree(stage.fs, path, [])
  else makeTree(stage.fs, AT, [`file ${index} 0640`])
  const at = openMountPoint(stage.host, path) ?? expect.unreachable()
  mountOn(at, `${VOLUME}/${ONE}/${subPath}`)
  return at
}

function mountOn(at: MountPoint, source: string): void {
  const { inodes, mounts } = stage.host
  const opened = inodes.openLinkFree(source)
  const tree = mounts.cloneTree(opened)
  attachTreeAtPoint(stage.host, at, tree)
  for (const handle of [opened, tree]) inodes.close(handle)
}

function heal(over: Partial<Host['mounts']> = {}, dryRun = false) {
  world.actions.length = 0
  const handles = world.handles.size
  const host = { ...stage.host, mounts: { ...stage.host.mounts, ...over } }
  const findings = healSubPaths({ ...stage.session(), host }, KUBELET, { dryRun })
  expect(world.handles.size - handles).toBe(0)
  expect([...world.locked]).toEqual([])
  return findings
}

const changes = () => world.actions.filter((action) => !/^(mkdir|write)\w* /.test(action))
const shown = (path = point.path) => readMountLayers(stage.host, path).map(({ root }) => root.replace(VOLUME, ''))
const OLD = `/${ONE}/config//deleted`
const NEW = `/${TWO}/config`
const found = (action: string, reason: string) => ({
  mountPoint: `${AT}/0`,
  source: `${VOLUME}/config`,
  action,
  reason,
})

describe("kubelet's subPath bind of a deleted source", () => {
  it('is replaced by one of the current source, with its flags and without a gap', () => {
    flip()
    expect(shown()).toEqual([OLD])
    expect(heal()).toEqual([found('replaced', STALE)])
    expect(shown()).toEqual([NEW])
    expect(changes()).toEqual(['clone-tree', 'set-flags 3 70', 'attach-beneath', 'detach'])
    expect(heal()).toEqual([])
  })

  it('is unmounted first on a kernel that cannot mount beneath', () => {
    flip()
    expect(heal({ attachBeneath: () => false })).toEqual([found('replaced', STALE)])
    expect(shown()).toEqual([NEW])
    expect(changes()).toEqual(['clone-tree', 'set-flags 3 70', 'detach', 'attach'])
  })

  it('is reported by a dry run, which changes nothing and creates no state directory', () => {
    flip()
    expect(heal({}, true)).toEqual([found('replaced', STALE)])
    expect(world.actions).toEqual([])
    expect(shown()).toEqual([OLD])
  })

  it('is skipped while another heal runs, and a dry run does not wait for that heal', () => {
    flip()
    const lock = tryAcquireNodeLock(stage.session(), 'sub-paths')
    const work = (dryRun = false) => healSubPaths(stage.session(), KUBELET, { dryRun })
    expect(work()).toEqual([found('none', 'another heal is at work')])
    expect(work(true)).toEqual([found('replaced', STALE)])
    expect(shown()).toEqual([OLD])
    lock?.[Symbol.dispose]()
    expect(work()).toEqual([found('replaced', STALE)])
  })

  it.each<[string, string[], string]>([
    ['is a directory now', ['file config/inner 0644'], '"config" was no directory and is one now: the container'],
    ['leads out of the volume', ['link config ../../../../../../../outside'], 'outside'],
    ['does not exist any more', ['file another 0644'], 'config'],
  ])('is kept if the directory that it shows %s', (_what, tree, reason) => {
    makeTree(stage.fs, '/outside', [])
    flip(tree)
    expect(heal()).toEqual([found('none', expect.stringContaining(reason))])
    expect(shown()).toEqual([OLD])
    expect(changes()).toEqual([])
  })

  it('is kept if another file system is mounted at its path in the volume', () => {
    flip()
    const other = stage.host.mounts.createTree('tmpfs', [])
    world.at(other).mount.fileSystem.fs.writeFileSync('/config', '')
    const current = openMountPoint(stage.host, `${VOLUME}/${TWO}`) ?? expect.unreachable()
    attachTreeAtPoint(stage.host, current, other)
    expect(heal()).toEqual([found('none', '"config" is on another file system than its volume')])
    expect(shown()).toEqual([OLD])
  })

  it('that cannot be repaired does not block others', () => {
    const second = bind(1, 'dir')
    flip(['file config/inner 0644', 'file dir/config 0644'])
    expect(heal().map(({ mountPoint, action }) => [mountPoint, action])).toEqual([
      [point.path, 'none'],
      [second.path, 'replaced'],
    ])
    expect([shown(), shown(second.path)]).toEqual([[OLD], [`/${TWO}/dir`]])
  })

  it("is kept with the kernel's error, and other binds are repaired; modekeep's own errors are thrown", () => {
    flip()
    const fails = (error: Error) => () => {
      throw error
    }
    const refused = new SystemError('open_tree', 'EPERM', 'the source')
    expect(heal({ cloneTree: fails(refused) })).toEqual([found('none', refused.message)])
    expect(() => heal({ cloneTree: fails(new TypeError('no handle')) })).toThrow('no handle')
    expect([...world.locked]).toEqual([])
    expect(shown()).toEqual([OLD])
  })
})

describe('a change by kubelet during heal', () => {
  const CHANGED = found('none', 'it has changed meanwhile')

  it('keeps a bind that was repaired after the mount table was read', () => {
    flip()
    const table = stage.host.mounts.table()
    stage.host.mounts.detach(point.parent, point.name)
    mountOn(point, `${VOLUME}/${TWO}/config`)
    expect(heal({ table: () => table })).toEqual([CHANGED])
    stage.host.mounts.detach(point.parent, point.name)
    expect(heal({ table: () => table })).toEqual([CHANGED])
    expect(changes()).toEqual([])
  })

  it('is accepted if a bind and its directory were removed after the mount table was read', () => {
    flip()
    const table = stage.host.mounts.table()
    stage.host.mounts.detach(point.parent, point.name)
    stage.fs.rmSync(AT, { recursive: true })
    expect(heal({ table: () => table })).toEqual([found('none', 'its directory is gone')])
  })

  it.each<[string, string[], () => void]>([
    ['that it unmounted', [], () => stage.host.mounts.detach(point.parent, point.name)],
    [
      'over which it mounted another',
      [NEW, OLD, `/${TWO}/dir/config`],
      () => mountOn(point, `${VOLUME}/${TWO}/dir/config`),
    ],
  ])('keeps a bind %s after the new one was mounted beneath', (_what, left, change) => {
    flip()
    const { attachBeneath } = stage.host.mounts
    const meanwhile: Host['mounts']['attachBeneath'] = (tree, target) => {
      const isDone = attachBeneath(tree, target)
      change()
      return isDone
    }
    expect(heal({ attachBeneath: meanwhile })).toEqual([CHANGED])
    expect(shown()).toEqual(left)
  })

  it('keeps a bind that was repaired before a kernel without mount-beneath would unmount it', () => {
    flip()
    const repaired = () => {
      for (const mount of world.mounts) {
        if (mount.root.startsWith(GONE)) mount.root = `${VOLUME}/${TWO}/config`
      }
      for (const place of world.handles.values()) {
        if (place.path.startsWith(GONE)) place.path = `${VOLUME}/${TWO}/config`
      }
      return false
    }
    expect(heal({ attachBeneath: repaired })).toEqual([CHANGED])
    expect(changes()).toEqual(['clone-tree', 'set-flags 3 70'])
  })
})

it('heal changes nothing if no bind is stale or kubelet has no directory, and creates no state directory', () => {
  expect(heal()).toEqual([])
  expect(healSubPaths(stage.session(), '/none', { dryRun: false })).toEqual([])
  expect(stage.fs.existsSync(stage.config.stateDir)).toBe(false)
})

it('an unreadable directory of kubelet is an error, and does not count as empty', () => {
  makeTree(stage.fs, '/file', ['file kubelet 0644'])
  expect(() => healSubPaths(stage.session(), '/file/kubelet', { dryRun: false })).toThrow('ENOTDIR')
})

it('each volume with subPath binds is watched once', () => {
  bind(1, 'dir')
  expect(listSubPathDirectories(stage.session(), KUBELET)).toEqual([VOLUME])
  flip()
  expect(listSubPathDirectories(stage.session(), KUBELET)).toEqual([VOLUME])
})
