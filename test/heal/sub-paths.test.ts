import { beforeEach, describe, expect, it } from 'vitest'
import { healSubPaths, listSubPathDirectories } from '../../src/heal/sub-paths.ts'
import { type Handle, type Host, SystemError } from '../../src/host/host.ts'
import { attachAt } from '../../src/mount/attach.ts'
import { type MountPoint, openMountPoint } from '../../src/mount-table/mount-point.ts'
import { readLayers } from '../../src/mount-table/mountinfo.ts'
import { tryLockNode } from '../../src/store/locks.ts'
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
  attachAt(stage.host, at, tree)
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
const shown = (path = point.path) => readLayers(stage.host, path).map(({ root }) => root.replace(VOLUME, ''))
const OLD = `/${ONE}/config//deleted`
const NEW = `/${TWO}/config`
const found = (action: string, reason: string) => ({
  mountPoint: `${AT}/0`,
  source: `${VOLUME}/config`,
  action,
  reason,
})

describe("a sub path bind of kubelet's whose source was deleted", () => {
  it('gives way to one of the current source, with the flags it had and no moment without a mount', () => {
    flip()
    expect(shown()).toEqual([OLD])
    expect(heal()).toEqual([found('replaced', STALE)])
    expect(shown()).toEqual([NEW])
    expect(changes()).toEqual(['clone-tree', 'set-flags 3 70', 'attach-beneath', 'detach'])
    expect(heal()).toEqual([])
  })

  it('is taken away first by a kernel that cannot mount beneath', () => {
    flip()
    expect(heal({ attachBeneath: () => false })).toEqual([found('replaced', STALE)])
    expect(shown()).toEqual([NEW])
    expect(changes()).toEqual(['clone-tree', 'set-flags 3 70', 'detach', 'attach'])
  })

  it('is told of by a dry run, which changes nothing and makes no state', () => {
    flip()
    expect(heal({}, true)).toEqual([found('replaced', STALE)])
    expect(world.actions).toEqual([])
    expect(shown()).toEqual([OLD])
  })

  it('is left to a heal that is at work, or to the next; a dry run waits for nobody', () => {
    flip()
    const lock = tryLockNode(stage.session(), 'sub-paths')
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
    ['is there no more', ['file another 0644'], 'config'],
  ])('is left where what it shows %s', (_what, tree, reason) => {
    makeTree(stage.fs, '/outside', [])
    flip(tree)
    expect(heal()).toEqual([found('none', expect.stringContaining(reason))])
    expect(shown()).toEqual([OLD])
    expect(changes()).toEqual([])
  })

  it('is left where another file system lies at its place in the volume', () => {
    flip()
    const other = stage.host.mounts.createTree('tmpfs', [])
    world.at(other).mount.fileSystem.fs.writeFileSync('/config', '')
    const current = openMountPoint(stage.host, `${VOLUME}/${TWO}`) ?? expect.unreachable()
    attachAt(stage.host, current, other)
    expect(heal()).toEqual([found('none', '"config" is on another file system than its volume')])
    expect(shown()).toEqual([OLD])
  })

  it('does not keep another from being healed where it cannot be', () => {
    const second = bind(1, 'dir')
    flip(['file config/inner 0644', 'file dir/config 0644'])
    expect(heal().map(({ mountPoint, action }) => [mountPoint, action])).toEqual([
      [point.path, 'none'],
      [second.path, 'replaced'],
    ])
    expect([shown(), shown(second.path)]).toEqual([[OLD], [`/${TWO}/dir`]])
  })

  it("tells of the kernel's refusal and goes on, but passes on what is modekeep's own error", () => {
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

describe('what kubelet changes while a heal is at work is left as it is', () => {
  const CHANGED = found('none', 'it has changed meanwhile')

  it('a bind that was repaired after the mount table was read', () => {
    flip()
    const table = stage.host.mounts.table()
    stage.host.mounts.detach(point.parent, point.name)
    mountOn(point, `${VOLUME}/${TWO}/config`)
    expect(heal({ table: () => table })).toEqual([CHANGED])
    stage.host.mounts.detach(point.parent, point.name)
    expect(heal({ table: () => table })).toEqual([CHANGED])
    expect(changes()).toEqual([])
  })

  it('a bind that went, with its place, after the mount table was read', () => {
    flip()
    const table = stage.host.mounts.table()
    stage.host.mounts.detach(point.parent, point.name)
    stage.fs.rmSync(AT, { recursive: true })
    expect(heal({ table: () => table })).toEqual([found('none', 'its directory is gone')])
  })

  it.each<[string, string[], () => void]>([
    ['that it took away', [], () => stage.host.mounts.detach(point.parent, point.name)],
    [
      'over which it mounted another',
      [NEW, OLD, `/${TWO}/dir/config`],
      () => mountOn(point, `${VOLUME}/${TWO}/dir/config`),
    ],
  ])('a bind %s after the new one was put beneath', (_what, left, change) => {
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

  it('a bind that was repaired before a kernel that cannot mount beneath would take it away', () => {
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

it('nothing is healed where no bind is stale, or kubelet has no directory, and no state is made', () => {
  expect(heal()).toEqual([])
  expect(healSubPaths(stage.session(), '/none', { dryRun: false })).toEqual([])
  expect(stage.fs.existsSync(stage.config.stateDir)).toBe(false)
})

it("a directory of kubelet's that cannot be opened is an error, and does not pass for an empty one", () => {
  makeTree(stage.fs, '/file', ['file kubelet 0644'])
  expect(() => healSubPaths(stage.session(), '/file/kubelet', { dryRun: false })).toThrow('ENOTDIR')
})

it('the volumes whose change matters are named once, stale or not', () => {
  bind(1, 'dir')
  expect(listSubPathDirectories(stage.session(), KUBELET)).toEqual([VOLUME])
  flip()
  expect(listSubPathDirectories(stage.session(), KUBELET)).toEqual([VOLUME])
})
