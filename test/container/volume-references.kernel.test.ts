import * as fs from 'node:fs'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { attachContainerClones } from '../../src/container/attach-clones.ts'
import type { ContainerCloneRequest } from '../../src/container/clone-request.ts'
import { reconcileContainers, releaseContainerClones } from '../../src/container/container-task.ts'
import { deferHandleClose } from '../../src/kernel/host.ts'
import { reservationRecords } from '../../src/state/process-records.ts'
import { locateVolumeRecords } from '../../src/state/record-directories.ts'
import { resolveVolumeIdentity } from '../../src/state/volume-identity.ts'
import { type VolumeRecord, volumeRecords } from '../../src/state/volume-record.ts'
import { isRoot, kernelStage, type Stage } from '../helpers/stage.ts'
import { makeTree } from '../helpers/tree.ts'
import { CONTAINER, UID } from './node.ts'

describe.skipIf(!isRoot)('a container that sees a volume with another group', () => {
  let stage: Stage
  let source: string
  beforeEach(() => {
    stage = kernelStage('tmpfs')
    source = `${stage.top}/volumes/data`
    makeTree(fs, source, ['file a 0640 5', 'dir sub 0750 5'])
    fs.chownSync(source, 0, 500)
    fs.mkdirSync(`${stage.top}/kubelet/pods/${UID}`, { recursive: true })
  })
  afterEach(async () => {
    await releaseContainerClones(stage.session(), CONTAINER, 'gone')
    reconcileContainers(stage.session())
    stage.close()
  })

  const order = (path: string): ContainerCloneRequest => ({
    container: CONTAINER,
    containerName: 'app',
    sandbox: '5a',
    pod: { namespace: 'shop', name: 'web', uid: UID },
    hasUserNamespace: false,
    kubeletDir: `${stage.top}/kubelet`,
    isOptional: false,
    clones: [
      {
        volume: path,
        destination: path,
        source: path,
        options: ['rbind', 'rprivate'],
        group: 2000,
        requestedBy: `annotation modekeep/group is "${path}=2000"`,
        isOwn: false,
        grants: [{ fsTypes: ['tmpfs'], systemGroups: true }],
      },
    ],
  })
  const attach = (path = source) => attachContainerClones(stage.session(), order(path))
  const asked = (group: number) => ({
    source,
    ownership: 'walk',
    restoreOnUnmount: 'true',
    'kubernetes.io/fsGroup': String(group),
  })

  it.each([
    ['all of it', ''],
    ['a part of it', '/sub'],
  ])("protects the volume's group on disk from other groups: %s", async (_what, part) => {
    const group = fs.statSync(`${source}${part}`).gid
    await attach(`${source}${part}`)
    await expect(stage.mount('other', asked(3000))).rejects.toThrow(
      `the volume belongs to group ${group} while pod shop/web uses ${source}${part} (container app), so group 3000 cannot have it`,
    )
    await stage.mount('same', asked(group))
    await stage.unmount('same')
    await releaseContainerClones(stage.session(), CONTAINER, 'gone')
    await stage.mount('other', asked(3000))
    expect(fs.statSync(source).gid).toBe(3000)
  })

  it('has no reference to the volume after its pod is deleted, also without an event', async () => {
    await attach()
    fs.rmdirSync(`${stage.top}/kubelet/pods/${UID}`)
    await stage.mount('other', asked(3000))
  })

  it('delays the restore of the volume until the container has ended', async () => {
    await stage.mount('walked', asked(3000))
    await attach()
    await stage.unmount('walked')
    expect(stage.noted.restore).toBe('pending until container app is unmounted and the volume is unmounted again')
    expect(fs.statSync(source).gid).toBe(3000)
    await releaseContainerClones(stage.session(), CONTAINER, 'gone')
    await stage.mount('walked', asked(3000))
    await stage.unmount('walked')
    expect(fs.statSync(source).gid).toBe(500)
  })

  const refusal = async () => {
    const message = await attach().then(
      () => 'attached',
      (error) => (error as Error).message,
    )
    const records = message === 'attached' ? [`${CONTAINER}.json`] : []
    expect(fs.readdirSync(`${stage.config.stateDir}/nri`).filter((name) => name !== 'mounts')).toEqual(records)
    return message
  }

  it('is refused while another call changes the group of the volume or of a part', async () => {
    const volume = 'ab-5-6'
    const place = locateVolumeRecords(stage, volume).path
    reservationRecords.write(stage, { volume, source: `${source}/sub`, group: 3000 })
    stage.host.files.makeDirectory(place)
    const lock = stage.host.tryLock(`${place}/lock`)
    expect(await refusal()).toContain('is being given another group by another call: kubelet tries again')
    reservationRecords.write(stage, { volume, source: `${source}/sub`, group: 500 })
    expect(await refusal()).toBe('attached')
    await releaseContainerClones(stage.session(), CONTAINER, 'gone')
    reservationRecords.write(stage, { volume, source: `${source}/sub`, group: 3000 })
    lock?.release()
    // Of a call that is dead.
    expect(await attach()).toMatchObject({ mounts: [{ do: 'replace' }] })
  })

  it('is refused after an incomplete walk, because the files have several groups', async () => {
    const { inodes } = stage.host
    const handle = inodes.openTrusted(source)
    using _ = deferHandleClose(inodes, handle)
    const volume = resolveVolumeIdentity(stage, handle, inodes.stat(handle))
    const record: VolumeRecord = {
      volume,
      source,
      group: 7,
      groupAccess: 'keep',
      complete: false,
      restorePending: false,
    }
    volumeRecords.write(stage, record)
    expect(await refusal()).toContain('a walk or a restore of it was not finished, so its files have several groups')
    volumeRecords.write(stage, { ...record, complete: true })
    expect(await attach()).toMatchObject({ mounts: [{ do: 'replace' }] })
  })
})
