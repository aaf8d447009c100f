import { beforeEach, describe, expect, it } from 'vitest'
import { applyGroupToNodeDirectory, restoreNodeDirectory } from '../../src/fsgroup/volume-by-hand.ts'
import { walkVolumeForCaller } from '../../src/fsgroup/walk-volume.ts'
import type { WorkerCall, WorkerCallEnd, WorkerReport } from '../../src/kernel/worker-process.ts'
import { volumeRecords } from '../../src/state/volume-record.ts'
import { runIsolatedWorkRequest } from '../../src/worker/serve.ts'
import { memoryStage, type Stage } from '../helpers/stage.ts'
import { groups, listTree, makeTree } from '../helpers/tree.ts'

const FS_GROUP = { groupId: 2000, access: 'keep', changePolicy: 'Always' } as const
const ENDED: WorkerCallEnd = { isSilent: false, leftBehind: undefined, pid: 4711, ended: Promise.resolve() }

let stage: Stage
let source: string
let calls: WorkerCall[]
beforeEach(() => {
  stage = memoryStage()
  source = `${stage.top}/volumes/data`
  makeTree(stage.fs, source, ['file test 0640 7', 'dir below 0755 7', 'file below/more 0600 7'])
  calls = []
})

/** Makes a daemon serve the volume. @param run replaces the worker process */
function served(run: (call: WorkerCall) => Promise<WorkerCallEnd>): void {
  const { host } = stage
  const table = () => host.mounts.table().replaceAll(' - memory ', ' - fuse.daemon ')
  const callWorker = (call: WorkerCall) => {
    calls.push(call)
    return run(call)
  }
  stage.host = { ...host, mounts: { ...host.mounts, table }, callWorker }
}

const apply = () => stage.byHand(source, (session, opened) => applyGroupToNodeDirectory(session, opened, FS_GROUP))
const restore = () => stage.byHand(source, (session, opened) => restoreNodeDirectory(session, opened))
const groupsIn = () => Object.values(groups(listTree(stage.fs, source))).sort()
const volume = () => stage.byHand(source, async (_, opened) => opened.volume)
const says =
  (...reports: WorkerReport<unknown, unknown>[]) =>
  async ({ onReport }: WorkerCall) => {
    for (const report of reports) onReport(report)
    return ENDED
  }

describe('a volume of a server or a daemon', () => {
  it("is walked and restored by an isolated process with the volume's lock, and the records are the same", async () => {
    const seen: boolean[] = []
    served(async ({ handle, task, lock, onReport }) => {
      seen.push(stage.host.isLocked(lock?.replace('walker.lock', 'lock') ?? ''))
      const write = (line: string) => onReport(JSON.parse(line))
      await runIsolatedWorkRequest(stage.host, handle, task, write, async () => walkVolumeForCaller)
      return ENDED
    })
    expect(await apply()).toMatchObject({ visited: 4, changed: 4 })
    expect(groupsIn()).toEqual([2000, 2000, 2000, 2000])
    expect(volumeRecords.read(stage, await volume())).toMatchObject({ group: 2000, complete: true })
    expect(await restore()).toMatchObject({ outcome: 'restored', report: { changed: 4 } })
    expect(groupsIn()).toEqual([0, 7, 7, 7])
    expect(volumeRecords.read(stage, await volume())).toBeUndefined()
    expect(seen).toEqual([true, true])
    expect(calls.map(({ patienceMs }) => patienceMs)).toEqual([60_000, 60_000])
  })

  it('is never walked in the calling process, even if no isolated process can start', async () => {
    served(() => Promise.reject(new Error('no process')))
    await expect(apply()).rejects.toThrow('no process')
    expect(groupsIn()).toEqual([0, 7, 7, 7])
  })

  it.each([
    [
      [{ outcome: { refused: [{ code: 'journal-full', reason: 'the disk is full' }], isUnknownFormat: false } }],
      /^the disk is full$/,
    ],
    [[{ outcome: { failed: 'fchownat: EIO' } }], /^fchownat: EIO$/],
    [
      [{ progress: { counts: { visited: 1, changed: 1 } } }],
      /^the process that worked for this call, as a server may hang, has crashed$/,
    ],
    [[], /^the process that worked for this call, as a server may hang, has crashed$/],
  ])('is walked again after an incomplete walk: %j', async (lines, message) => {
    served(says(...lines))
    await expect(apply()).rejects.toThrow(message)
    expect(volumeRecords.read(stage, await volume())).toMatchObject({ group: 2000, complete: false })
  })

  it.each([
    [undefined, /hangs\): repair that on the node, and the next call goes on where this one was$/],
    [4711, /where this one was; until then process 4711 waits for it$/],
  ])('without a response ends the walk, and the message names the remaining process: %s', async (pid, message) => {
    served(async () => ({ ...ENDED, isSilent: true, leftBehind: pid, pid: pid ?? 4712 }))
    stage.config = { ...stage.config, helperTimeoutSeconds: 0.1 }
    await expect(apply()).rejects.toThrow(message)
    expect(calls[0]?.patienceMs).toBe(5000)
    expect(volumeRecords.read(stage, await volume())).toMatchObject({ complete: false })
  })

  it('has its progress reported during the walk', async () => {
    const told: number[] = []
    served(
      says(
        { progress: { counts: { visited: 1, changed: 0 } } },
        { progress: { counts: { visited: 5, changed: 2 } } },
        { outcome: { failed: 'over' } },
      ),
    )
    const work = stage.byHand(source, (session, opened) =>
      applyGroupToNodeDirectory({ ...session, progress: ({ visited }) => told.push(visited) }, opened, FS_GROUP),
    )
    await expect(work).rejects.toThrow('over')
    expect(told).toEqual([1, 5])
  })
})

it('a volume on the node itself is walked in the calling process', async () => {
  stage.host = { ...stage.host, callWorker: () => Promise.reject(new Error('for nothing')) }
  expect(await apply()).toMatchObject({ changed: 4 })
})
