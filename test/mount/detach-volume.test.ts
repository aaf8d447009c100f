import { beforeEach, describe, expect, it } from 'vitest'
import type { WorkerCall, WorkerCallEnd } from '../../src/kernel/worker-process.ts'
import { unmountServerVolumeInWorker } from '../../src/mount/detach-volume.ts'
import { mountRecords } from '../../src/state/mount-record.ts'
import { runIsolatedWorkRequest } from '../../src/worker/serve.ts'
import { memoryStage, type Stage } from '../helpers/stage.ts'
import { makeTree } from '../helpers/tree.ts'

const ENDED: WorkerCallEnd = { isSilent: false, leftBehind: undefined, pid: 4711, ended: Promise.resolve() }
const EXPORT = { type: 'export', server: 'nas', path: '/export' } as const
const SILENT: WorkerCallEnd = { ...ENDED, isSilent: true, leftBehind: 4711 }

let stage: Stage
beforeEach(() => {
  stage = memoryStage()
})

/** Mounts a volume of pod a that is recorded as a server's. @param run replaces the process that unmounts */
async function mountServed(run: (call: WorkerCall, unmount: () => Promise<void>) => Promise<WorkerCallEnd>) {
  const source = `${stage.top}/volumes/data`
  makeTree(stage.fs, source, ['file test 0640 7'])
  await stage.mount('a', { source })
  const record = mountRecords.read(stage, stage.podDirectory('a'))
  if (record === undefined) throw new Error('no record')
  mountRecords.write(stage, { ...record, request: { ...record.request, fsType: 'nfs4', source: EXPORT } })
  const { host } = stage
  const callWorker = (call: WorkerCall) => {
    const report = (line: string) => call.onReport(JSON.parse(line))
    return run(call, () =>
      runIsolatedWorkRequest(host, call.handle, call.task, report, async () => unmountServerVolumeInWorker),
    )
  }
  stage.host = { ...host, callWorker }
}

async function expectUnmounted(): Promise<void> {
  const directory = stage.podDirectory('a')
  await stage.unmount('a')
  expect([stage.layers('a'), mountRecords.read(stage, directory), stage.warnings]).toEqual([[], undefined, []])
}

describe("the unmount of a server's volume", () => {
  it('is made by a process of its own', async () => {
    let calls = 0
    await mountServed(async (_, unmount) => {
      calls++
      await unmount()
      return ENDED
    })
    await expectUnmounted()
    expect(calls).toBe(1)
  })

  it('succeeds without waiting for a process that still waits for the server once the mount is gone', async () => {
    await mountServed(async (_, unmount) => {
      await unmount()
      return SILENT
    })
    await expectUnmounted()
    expect(stage.noted.unmount).toContain('process 4711 waits for it')
  })

  it.each([
    ['has done nothing in its time', async () => SILENT],
    ['has crashed', async () => ENDED],
    ['cannot start', () => Promise.reject(new Error('EAGAIN'))],
  ])('is made by the call itself if the process %s', async (_, run) => {
    await mountServed(run)
    await expectUnmounted()
  })
})
