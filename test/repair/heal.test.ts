import { beforeEach, expect, it } from 'vitest'
import { listWatchedSourceDirectories } from '../../src/repair/watch.ts'
import { tryLockRecordDirectory } from '../../src/state/locks.ts'
import { listReadableMountRecords, mountRecords } from '../../src/state/mount-record.ts'
import { listVolumesWithRecords, locateMountRecords, locateVolumeRecords } from '../../src/state/record-directories.ts'
import { volumeRecords } from '../../src/state/volume-record.ts'
import { memoryStage, type Stage } from '../helpers/stage.ts'
import { makeTree } from '../helpers/tree.ts'

let stage: Stage
let source: string
beforeEach(async () => {
  stage = memoryStage()
  source = `${stage.top}/volumes/one`
  makeTree(stage.fs, source, ['file first 0644', 'file ..1/deep/part/x 0644', 'link part ..1/deep/part'])
})

const mount = (pod: string, more: Record<string, string> = {}) => stage.mount(pod, { source, ...more })
const found = async (isDry = false) => (await stage.heal(isDry)).map(({ state, action }) => [state, action])

/** As an unmount by hand does. */
function unmountByHand(pod: string): void {
  const { inodes, mounts } = stage.host
  const parent = inodes.openTrusted(stage.podDirectory(pod).replace(/\/v$/, ''))
  mounts.detach(parent, Buffer.from('v'))
  inodes.close(parent)
}

it('heal and its dry run skip a mount that a call has locked, and check the others', async () => {
  for (const pod of ['a', 'b']) {
    await mount(pod)
    unmountByHand(pod)
  }
  const lock = tryLockRecordDirectory(stage, locateMountRecords(stage, stage.podDirectory('a')))
  for (const isDry of [true, false]) {
    expect(await found(isDry)).toEqual([
      ['in progress', 'none'],
      ['missing', 'mounted'],
    ])
  }
  expect([stage.layers('a').length, stage.layers('b').length]).toEqual([0, 1])
  lock?.release()
  expect(await found()).toEqual([
    ['missing', 'mounted'],
    ['healthy', 'none'],
  ])
})

it("heal reports a healthy mount without taking the mount's lock", async () => {
  await mount('a')
  const lock = tryLockRecordDirectory(stage, locateMountRecords(stage, stage.podDirectory('a')))
  expect(await found()).toEqual([['healthy', 'none']])
  lock?.release()
})

it('heal reads the record of a walked volume once, also if it reports a change', async () => {
  await mount('a', { ownership: 'walk', 'kubernetes.io/fsGroup': '2000' })
  const [record] = listReadableMountRecords(stage)
  const volume = volumeRecords.read(stage, record?.volume ?? '')
  if (!volume) throw new Error('no record')
  volumeRecords.write(stage, { ...volume, changedSince: { inodes: 1, hasRoot: true } })
  const { files } = stage.host
  const reads: string[] = []
  stage.host = { ...stage.host, files: { ...files, read: (path) => [reads.push(path), files.read(path)][1] as string } }
  const place = locateVolumeRecords(stage, volume.volume)
  const ofVolume = () => reads.filter((path) => path.startsWith(`${place.path}/`)).length
  expect(await found()).toEqual([['changed', 'none']])
  expect(ofVolume()).toBe(1)
  const lock = tryLockRecordDirectory(stage, place)
  expect(await found()).toEqual([['changed', 'none']])
  lock?.release()
  expect(ofVolume()).toBe(2)
})

it('a source whose server does not respond is queried once, and its mounts are unchanged', async () => {
  for (const pod of ['a', 'b']) await mount(pod)
  unmountByHand('a')
  const { daemons, mounts } = stage.host
  const asked: number[] = []
  stage.host.daemons = {
    ...daemons,
    answers: async (_parent, _name, patience) => {
      asked.push(patience)
      return false
    },
  }
  const { table } = mounts
  stage.host.mounts = { ...mounts, table: () => table().replaceAll(' - memory ', ' - nfs4 ') }
  expect(await found()).toEqual([
    ['unknown', 'none'],
    ['unknown', 'none'],
  ])
  expect(asked).toHaveLength(1)
  expect(stage.layers('a')).toEqual([])
})

it('a mount that no rule allows any longer is repaired, as it was allowed when it was made', async () => {
  for (const pod of ['a', 'b']) await mount(pod)
  const other = `${stage.top}/volumes/two`
  makeTree(stage.fs, other, [])
  await stage.mount('c', { source: other })
  stage.allow({ sources: [other] })
  unmountByHand('a')
  unmountByHand('c')
  expect(await found()).toEqual([
    ['missing', 'mounted'],
    ['healthy', 'none'],
    ['missing', 'mounted'],
  ])
  expect(stage.layers('a')).toHaveLength(1)
})

it('the watched directories are the source, its parents, and the targets of links', async () => {
  await mount('a', { subPath: 'part' })
  await mount('b')
  const { top } = stage
  expect(listWatchedSourceDirectories(stage.session())).toEqual(
    [`${top}/volumes`, source, `${source}/..1`, `${source}/..1/deep`].sort(),
  )
})

it('a subPath of any depth adds at most 32 watched directories', async () => {
  const deep = Array(100).fill('d').join('/')
  stage.fs.mkdirSync(`${source}/${deep}`, { recursive: true })
  await mount('a', { subPath: deep })
  const watched = listWatchedSourceDirectories(stage.session())
  expect(watched).toContain(`${source}/${Array(99).fill('d').join('/')}`)
  expect(watched).toHaveLength(2 + 32)
})

it('heal and its dry run read a mount record again if a call replaced the mount meanwhile', async () => {
  const other = `${stage.top}/volumes/two`
  makeTree(stage.fs, other, [])
  await mount('a')
  const path = `${locateMountRecords(stage, stage.podDirectory('a')).path}/record.json`
  const { files } = stage.host
  const before = files.read(path)
  await stage.mount('a', { source: other })
  for (const isDry of [true, false]) {
    let reads = 0
    stage.host.files = { ...files, read: (at) => (at === path && reads++ === 0 ? before : files.read(at)) }
    expect(await found(isDry)).toEqual([['healthy', 'none']])
    expect(reads).toBeGreaterThan(1)
  }
})

const WALK = { ownership: 'walk', 'kubernetes.io/fsGroup': '2000' }

/** As it is while a call walks the volume, and after one that was killed. */
function halfWalked(): string {
  const [volume = ''] = listVolumesWithRecords(stage)
  const record = volumeRecords.read(stage, volume)
  if (!record) throw new Error('not walked')
  volumeRecords.write(stage, { ...record, complete: false })
  return volume
}

it("another call's walk does not count as interrupted, and its volume is skipped until it ends", async () => {
  for (const pod of ['a', 'b']) await mount(pod, WALK)
  unmountByHand('b')
  const lock = tryLockRecordDirectory(stage, locateVolumeRecords(stage, halfWalked()))
  for (const isDry of [true, false]) {
    expect(await stage.heal(isDry)).toMatchObject([
      { state: 'healthy', action: 'none' },
      { state: 'in progress', action: 'none', reason: 'a call is at work on its volume' },
    ])
  }
  expect(stage.layers('b')).toEqual([])
  lock?.release()
  expect((await found())[1]).toEqual(['missing', 'mounted'])
  expect(await found()).toEqual([
    ['healthy', 'none'],
    ['healthy', 'none'],
  ])
})

it('heal completes the remaining steps of an existing mount without the secrets of the mount', async () => {
  await mount('a')
  const [record] = listReadableMountRecords(stage)
  if (!record) throw new Error('no record')
  mountRecords.write(stage, { ...record, hadSecrets: true, replacedDaemons: ['gone'] })
  expect(await found()).toEqual([['healthy', 'none']])
  expect(listReadableMountRecords(stage)).toMatchObject([{ hadSecrets: true, replacedDaemons: [] }])
})
