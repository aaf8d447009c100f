import { beforeEach, describe, expect, it } from 'vitest'
import type { MountRequest } from '../../src/config/mount-request.ts'
import { SystemError } from '../../src/kernel/host.ts'
import { type MountPoint, openMountPoint } from '../../src/kernel/mount-table/mount-point.ts'
import { readMountLayers } from '../../src/kernel/mount-table/mountinfo.ts'
import { attachTreeAtPoint } from '../../src/mount/attach.ts'
import type { MountStep } from '../../src/mount/plan.ts'
import { runMountPlan } from '../../src/mount/run.ts'
import { type MountRecord, mountRecords } from '../../src/state/mount-record.ts'
import { createDetachedTree } from '../../src/volume/detached-tree.ts'
import { tmpfsKind } from '../../src/volume/tmpfs.ts'
import { BIND_REQUEST, READY } from '../helpers/mount-records.ts'
import { memoryStage, type Stage } from '../helpers/stage.ts'
import { makeTree } from '../helpers/tree.ts'
import type { MemoryWorld } from '../memory-host/world.ts'

const PLACE = '/node/pods/p/volumes/modekeep~fs/v'
const request: MountRequest = { ...BIND_REQUEST, directory: PLACE, fsType: 'tmpfs', source: { type: 'none' } }
const begun: MountRecord = { ...READY, directory: PLACE, volume: undefined, source: undefined, mounted: undefined }

const RECORD: MountStep = { do: 'record', record: begun, undo: { restore: undefined } }
const MAKE: MountStep = { do: 'make-tree', group: undefined, undo: 'close-tree' }
const FLAGS: MountStep = { do: 'set-flags', set: 6, clear: 0 }
const READY_NOW: MountStep = { do: 'record-ready', record: begun, undo: { restore: undefined } }
const DETACH: MountStep = { do: 'detach-all', undo: 'old-mount' }
const FILE: MountStep = { do: 'set-target', type: 'file', undo: 'directory-target' }
const ATTACH: MountStep = { do: 'attach', undo: 'detach' }
const FRESH = [RECORD, MAKE, FLAGS, READY_NOW, ATTACH]
const ANEW = [RECORD, MAKE, FLAGS, READY_NOW, DETACH, ATTACH]
/** Fails: flags are set while a mount is detached. */
const FAILS = FLAGS

let stage: Stage
let world: MemoryWorld
let point: MountPoint
beforeEach(() => {
  stage = memoryStage()
  world = stage.world ?? expect.unreachable()
  makeTree(stage.fs, PLACE, [])
  point = openMountPoint(stage.host, PLACE) ?? expect.unreachable()
})

const run = (steps: readonly MountStep[]) => {
  const session = stage.session()
  return runMountPlan(session, point, createDetachedTree(session, tmpfsKind, request, undefined), steps)
}
const record = () => mountRecords.read(stage, PLACE)
const shown = () => readMountLayers(stage.host, PLACE).map(({ id }) => id)

/** Mounts what another call has mounted there. @returns its id */
function mountOld(): number {
  const tree = stage.host.mounts.createTree('tmpfs', [])
  attachTreeAtPoint(stage.host, point, tree)
  stage.host.inodes.close(tree)
  return shown()[0] ?? expect.unreachable()
}

function refuse(call: 'createTree' | 'setFlags' | 'attach' | 'detach' | 'cloneTree'): void {
  stage.host.mounts[call] = () => {
    throw new SystemError(call, 'EIO', 'the mount')
  }
}

describe('a mount plan', () => {
  it('writes its record before it makes the tree, and marks it ready before it attaches', async () => {
    const seen: unknown[] = []
    const { createTree, attach } = stage.host.mounts
    stage.host.mounts.createTree = (...of) => {
      seen.push(record()?.mounted)
      return createTree(...of)
    }
    stage.host.mounts.attach = (...of) => {
      seen.push(record()?.mounted?.mountId)
      return attach(...of)
    }
    const handles = world.handles.size
    expect(await run(FRESH)).toEqual({ by: 'none' })
    const [id] = shown()
    expect(seen).toEqual([undefined, String(id)])
    expect(record()).toMatchObject({ given: { by: 'none' }, mounted: { mountId: String(id), namespace: 'memory' } })
    expect(world.handles.size).toBe(handles)
  })

  it.each(['createTree', 'setFlags', 'attach'] as const)(
    'leaves no record, mount or handle if %s fails',
    async (call) => {
      const handles = world.handles.size
      refuse(call)
      await expect(run(FRESH)).rejects.toThrow(call)
      expect([record(), shown(), world.handles.size - handles]).toEqual([undefined, [], 0])
      expect(stage.warnings).toEqual([])
    },
  )

  it('that fails after its attachment is undone in reverse order', async () => {
    world.actions.length = 0
    await expect(run([...FRESH, FAILS])).rejects.toThrow('EINVAL')
    expect([record(), shown()]).toEqual([undefined, []])
    const at = (action: RegExp) => world.actions.findLastIndex((one) => action.test(one))
    expect(at(/^detach/)).toBeGreaterThan(at(/^attach/))
    expect(at(/^rm.*record/)).toBeGreaterThan(at(/^detach/))
  })

  it('that fails restores the earlier record', async () => {
    const before = { ...begun, pod: 'n/before' }
    const restored: MountStep[] = [{ ...RECORD, undo: { restore: before } } as MountStep, MAKE, ATTACH, FAILS]
    await expect(run(restored)).rejects.toThrow('EINVAL')
    expect(record()).toEqual(before)
  })
})

describe('a plan that replaces a mount', () => {
  it('closes its clone of the old mount when the new one is attached', async () => {
    const old = mountOld()
    const handles = world.handles.size
    await run(ANEW)
    expect(shown()).toHaveLength(1)
    expect(shown()).not.toContain(old)
    expect(world.handles.size).toBe(handles)
  })

  it.each<[string, MountStep[], () => void]>([
    ['cannot be attached', ANEW, refuseFirstAttach],
    ['is attached on a file and then fails', [...ANEW.slice(0, -1), FILE, ATTACH, FAILS], () => {}],
  ])('shows the old mount if the new one %s', async (_what, steps, spoil) => {
    mountOld()
    const { fileSystem } = world.mounts.at(-1) ?? expect.unreachable()
    spoil()
    const handles = world.handles.size
    await expect(run(steps)).rejects.toThrow(/EINVAL|EIO/)
    expect(shown()).toHaveLength(1)
    expect(world.cross({ mount: world.rootMount, path: PLACE }).mount.fileSystem).toBe(fileSystem)
    expect(stage.fs.statSync(PLACE).isDirectory()).toBe(true)
    expect([record(), world.handles.size - handles, stage.warnings]).toEqual([undefined, 0, []])
  })

  it('changes nothing if the old mount cannot be cloned, as the node lacks a resource', async () => {
    const old = mountOld()
    stage.host.mounts.cloneTree = () => {
      throw new SystemError('open_tree', 'ENOSPC', 'the source')
    }
    await expect(run(ANEW)).rejects.toThrow('ENOSPC')
    expect([shown(), record()]).toEqual([[old], undefined])
  })
})

it('if the inverse of a mount step fails, a warning is logged, the other inverses run, and the first error is thrown', async () => {
  refuse('detach')
  await expect(run([...FRESH, FAILS])).rejects.toThrow('EINVAL')
  expect(stage.warnings).toEqual([expect.stringMatching(/^could not undo "attach": .*EIO/)])
  expect(record()).toBeUndefined()
})

/** What was there before is attached once more. */
function refuseFirstAttach(): void {
  const { attach } = stage.host.mounts
  stage.host.mounts.attach = () => {
    stage.host.mounts.attach = attach
    throw new SystemError('move_mount', 'EIO', 'the mount directory')
  }
}
