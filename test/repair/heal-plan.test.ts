import { beforeEach, expect, it } from 'vitest'
import { forgetEndedMount, judgeMount, judgeMountLocked } from '../../src/repair/heal-plan.ts'
import { tryLockRecordDirectory } from '../../src/state/locks.ts'
import { listReadableMountRecords, type MountRecord, mountRecords } from '../../src/state/mount-record.ts'
import { locateMountRecords } from '../../src/state/record-directories.ts'
import { memoryStage, type Stage } from '../helpers/stage.ts'
import { groups, listTree, makeTree } from '../helpers/tree.ts'

let stage: Stage
let record: MountRecord
beforeEach(async () => {
  stage = memoryStage()
  makeTree(stage.fs, `${stage.top}/volumes/one`, ['file first 0644'])
  const asked = { ownership: 'walk', restoreOnUnmount: 'true', 'kubernetes.io/fsGroup': '2000' }
  await stage.mount('a', { source: `${stage.top}/volumes/one`, ...asked })
  const [only] = listReadableMountRecords(stage)
  if (!only) throw new Error('no record')
  record = only
})

const lockPath = () => `${locateMountRecords(stage, record.directory).path}/lock`
const judged = () => judgeMountLocked(stage.session(), record.directory, ({ plan }) => plan.state)

it("a heal plan takes the mount's lock for a repair, and takes no lock for a report", async () => {
  await judgeMount(stage.session(), record, ({ plan, point }) => {
    expect(plan).toEqual({ state: 'healthy', action: 'mount', reason: '' })
    expect(point?.path).toBe(stage.podDirectory('a'))
    expect(stage.host.isLocked(lockPath())).toBe(false)
  })
  await judgeMountLocked(stage.session(), record.directory, () => expect(stage.host.isLocked(lockPath())).toBe(true))
  expect(stage.host.isLocked(lockPath())).toBe(false)
})

it('a heal plan does not wait for a running call, and reports if that call removed the record', async () => {
  const lock = tryLockRecordDirectory(stage, locateMountRecords(stage, record.directory))
  expect(await judged()).toBe('locked')
  lock?.release()
  expect(await judged()).toBe('healthy')
  mountRecords.remove(stage, record.directory)
  expect(await judged()).toBe('gone')
  expect(stage.fs.existsSync(lockPath())).toBe(false)
})

it('a heal plan that fails releases the lock and closes every handle', async () => {
  const open = new Set<unknown>()
  const { inodes } = stage.host
  stage.host.inodes = {
    ...inodes,
    openTrusted(path) {
      const handle = inodes.openTrusted(path)
      open.add(handle)
      return handle
    },
    close(handle) {
      open.delete(handle)
      inodes.close(handle)
    },
  }
  const failing = judgeMountLocked(stage.session(), record.directory, () => Promise.reject(new Error('not today')))
  await expect(failing).rejects.toThrow('not today')
  expect([...open]).toEqual([])
  expect(stage.host.isLocked(lockPath())).toBe(false)
})

const inVolume = () => groups(listTree(stage.fs, `${stage.top}/volumes/one`))

it('heal restores the volume of a deleted pod when it removes the mount record', async () => {
  stage.reboot()
  stage.fs.rmSync(`${stage.top}/pods/a`, { recursive: true })
  await judgeMountLocked(stage.session(), record.directory, async (seen) => {
    expect(seen.plan).toMatchObject({ state: 'orphaned', action: 'forget' })
    await forgetEndedMount(stage.session(), seen)
  })
  expect(listReadableMountRecords(stage)).toEqual([])
  expect(inVolume()).toEqual({ '.': 0, first: 0 })
})

it('the record of a pod that a reboot ended stays while its unmount has to restore', async () => {
  stage.reboot()
  await judgeMountLocked(stage.session(), record.directory, ({ plan }) =>
    expect(plan).toEqual({ state: 'missing', action: 'leave', reason: 'the node was rebooted' }),
  )
  // The first call after the boot, which another pod makes.
  makeTree(stage.fs, `${stage.top}/volumes/two`, [])
  await stage.mount('b', { source: `${stage.top}/volumes/two` })
  expect(inVolume()).toEqual({ '.': 2000, first: 2000 })
  await stage.unmount('a')
  expect(listReadableMountRecords(stage)).toHaveLength(1)
  expect(inVolume()).toEqual({ '.': 0, first: 0 })
})
