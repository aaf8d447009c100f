import { expect, it } from 'vitest'
import { readSelectedStatus } from '../../../src/cli/commands/status.ts'
import { acquireRecordLock, tryAcquireNodeLock } from '../../../src/state/locks.ts'
import { mountRecords } from '../../../src/state/mount-record.ts'
import { nriPluginRecord } from '../../../src/state/process-records.ts'
import { locateVolumeRecords } from '../../../src/state/record-directories.ts'
import { memoryStage } from '../../helpers/stage.ts'
import { makeTree, SIX_FILES } from '../../helpers/tree.ts'

it('status shows a mount in progress with the running walk', async () => {
  const stage = memoryStage()
  const source = `${stage.top}/volumes/data`
  makeTree(stage.fs, source, SIX_FILES)
  await stage.mount('a', { source, ownership: 'walk', 'kubernetes.io/fsGroup': '2000' })
  const [before] = (await readSelectedStatus(stage.session())).mounts
  expect(before).toMatchObject({ ownership: 'walk', why: 'asked for', state: 'healthy' })
  const session = stage.session()
  const record = mountRecords.read(session, stage.podDirectory('a'))
  if (record?.volume === undefined) throw new Error('no record of the mount')
  mountRecords.write(session, { ...record, given: { by: 'none' }, mounted: undefined })
  using _ = await acquireRecordLock(session, locateVolumeRecords(session, record.volume))
  const [during] = (await readSelectedStatus(stage.session())).mounts
  expect(during).toMatchObject({ ownership: 'walk', why: 'under way', since: null, walk: { visited: 0 } })
})

it('status names the mount options that containers may lack if no NRI plugin runs', async () => {
  const stage = memoryStage()
  const source = `${stage.top}/volumes/data`
  makeTree(stage.fs, source, SIX_FILES)
  const options = { source, 'kubernetes.io/readwrite': 'ro', mountOptions: 'noexec,ro,noatime', ownership: 'none' }
  await stage.mount('a', options)
  const session = stage.session()
  const unenforced = async () => (await readSelectedStatus(session)).mounts.map((mount) => mount.unenforced)
  expect(await unenforced()).toEqual([['nosuid', 'nodev', 'noexec']])
  const podDirectory = stage.podDirectory('a').replace(/\/volumes\/.*$/, '')
  stage.fs.writeFileSync(`${podDirectory}/userns`, '{}')
  expect(await unenforced()).toEqual([[]])
  stage.fs.rmSync(`${podDirectory}/userns`)
  const plugin = { runtime: 'containerd v2.1.9', since: 0, socket: '/nri.sock' }
  nriPluginRecord.write(session, { ...plugin, isRegistered: true })
  using _ = tryAcquireNodeLock(session, 'nri')
  expect(await unenforced()).toEqual([[]])
  nriPluginRecord.write(session, { ...plugin, isRegistered: false })
  expect(await unenforced()).toEqual([['nosuid', 'nodev', 'noexec']])
})
