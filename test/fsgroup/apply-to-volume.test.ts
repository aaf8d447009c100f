import { describe, expect, it } from 'vitest'
import type { FsGroupRequest } from '../../src/config/mount-request.ts'
import { applyGroupToVolume, needsGroupWalk } from '../../src/fsgroup/apply-to-volume.ts'
import { createFsGroupTarget, restoreNodeDirectory } from '../../src/fsgroup/volume-by-hand.ts'
import { listReadableMountRecords, mountRecords } from '../../src/state/mount-record.ts'
import { FS_GROUP } from '../helpers/mount-records.ts'
import { memoryStage, type Stage } from '../helpers/stage.ts'
import { groups, listTree, makeTree } from '../helpers/tree.ts'

function arrange(): { stage: Stage; source: string } {
  const stage = memoryStage()
  const source = `${stage.top}/volumes/data`
  makeTree(stage.fs, source, ['file test 0640 7'])
  return { stage, source }
}

async function walk(stage: Stage, source: string, fsGroup: FsGroupRequest = FS_GROUP) {
  return stage.byHand(source, async (session, opened) => {
    const { lock, report } = await applyGroupToVolume(session, opened.tree, fsGroup, createFsGroupTarget(opened))
    lock.dispose()
    return report
  })
}

const needs = (stage: Stage, source: string, fsGroup: FsGroupRequest = FS_GROUP) =>
  stage.byHand(source, async (session, opened) => needsGroupWalk(session, opened.tree, fsGroup, opened.volume))

describe('a volume', () => {
  it('needs a walk if its root has another group or no set-gid', async () => {
    const { stage, source } = arrange()
    expect(await needs(stage, source)).toBe(true)
    stage.fs.chownSync(source, 0, 2000)
    expect(await needs(stage, source)).toBe(true)
    stage.fs.chmodSync(source, 0o2755)
    expect(await needs(stage, source)).toBe(false)
  })

  it('needs a walk with fsGroupChangePolicy Always, for any state of the root', async () => {
    const { stage, source } = arrange()
    await walk(stage, source)
    expect(await needs(stage, source)).toBe(false)
    expect(await needs(stage, source, { ...FS_GROUP, changePolicy: 'Always' })).toBe(true)
  })

  it('needs a walk for groupAccess "grant" after a walk with "keep", and none for "keep" after "grant"', async () => {
    const { stage, source } = arrange()
    await walk(stage, source)
    expect(await needs(stage, source, { ...FS_GROUP, access: 'grant' })).toBe(true)
    await walk(stage, source, { ...FS_GROUP, access: 'grant' })
    expect(await needs(stage, source)).toBe(false)
  })

  it('needs a walk after an incomplete walk, for any state of the root', async () => {
    const { stage, source } = arrange()
    const { chown } = stage.host.inodes
    const file = stage.fs.lstatSync(`${source}/test`).ino
    stage.host = {
      ...stage.host,
      inodes: {
        ...stage.host.inodes,
        chown(handle, gid) {
          if (Number(stage.host.inodes.stat(handle).inode) === file)
            throw Object.assign(new Error('EIO'), { code: 'EIO' })
          chown(handle, gid)
        },
      },
    }
    await expect(walk(stage, source)).rejects.toThrow('EIO')
    stage.fs.chownSync(source, 0, 2000)
    stage.fs.chmodSync(source, 0o2755)
    expect(await needs(stage, source)).toBe(true)
  })
})

describe('applying a group to a volume', () => {
  it('returns the report of the walk, or nothing if no walk was needed', async () => {
    const { stage, source } = arrange()
    expect(await walk(stage, source)).toMatchObject({ visited: 2, changed: 2 })
    expect(groups(listTree(stage.fs, source))).toEqual({ '.': 2000, test: 2000 })
    expect(await walk(stage, source)).toBeUndefined()
    expect(await walk(stage, source, { ...FS_GROUP, changePolicy: 'Always' })).toMatchObject({
      changed: 0,
      alreadyRight: 2,
    })
  })
})

it('an incomplete mount that cannot be inspected does not count as a copy of the disk', async () => {
  const { stage, source } = arrange()
  await stage.mount('a', { source, ownership: 'walk', 'kubernetes.io/fsGroup': '2000' })
  const [record] = listReadableMountRecords(stage)
  if (record === undefined) throw new Error('no record')
  mountRecords.write(stage, { ...record, mounted: undefined })
  const { statMountPoint } = stage.host.inodes
  const noMemory = (...of: Parameters<typeof statMountPoint>) => {
    if (of[1] === undefined) return statMountPoint(...of)
    throw Object.assign(new Error('ENOMEM'), { code: 'ENOMEM' })
  }
  stage.host = { ...stage.host, inodes: { ...stage.host.inodes, statMountPoint: noMemory } }
  expect(await walk(stage, source, { ...FS_GROUP, changePolicy: 'Always' })).toMatchObject({ alreadyRight: 2 })
})

describe('a volume with a damaged record', () => {
  const fileOf = (stage: Stage, name: string) => {
    const volumes = `${stage.config.stateDir}/ownership`
    return `${volumes}/${stage.fs.readdirSync(volumes)[0]}/${name}`
  }
  const arrangeDamage = async () => {
    const { stage, source } = arrange()
    await walk(stage, source)
    stage.fs.writeFileSync(fileOf(stage, 'record.json'), '{"format":2,"volume')
    stage.warnings.length = 0
    return { stage, source }
  }

  it('is walked again, with a warning that a pending restore is forgotten, and the journal keeps the first state', async () => {
    const { stage, source } = await arrangeDamage()
    expect(await walk(stage, source)).toMatchObject({ alreadyRight: 2 })
    expect(stage.warnings).toEqual([
      expect.stringMatching(/^the record of volume .* is damaged: the volume is walked again/),
    ])
    expect(await stage.byHand(source, restoreNodeDirectory)).toMatchObject({ outcome: 'restored' })
    expect(groups(listTree(stage.fs, source)).test).toBe(7)
  })

  it('without its journal is neither walked again nor treated as unrecorded', async () => {
    const { stage, source } = await arrangeDamage()
    stage.fs.rmSync(fileOf(stage, 'journal.db'))
    expect(await needs(stage, source)).toBe(true)
    const refusal = 'it is empty, although the volume was walked before'
    await expect(walk(stage, source, { ...FS_GROUP, groupId: 3000 })).rejects.toThrow(refusal)
    await expect(stage.byHand(source, restoreNodeDirectory)).rejects.toThrow(refusal)
    expect(groups(listTree(stage.fs, source)).test).toBe(2000)
    expect(stage.fs.existsSync(fileOf(stage, 'record.json'))).toBe(true)
  })
})
