import { expect, it } from 'vitest'
import { status } from '../../../src/operator/actions/status.ts'
import { holdPlace } from '../../../src/store/leftovers.ts'
import { mountRecords } from '../../../src/store/mount-record.ts'
import { volumePlace } from '../../../src/store/places.ts'
import { memoryStage } from '../../helpers/stage.ts'
import { makeTree, SIX_FILES } from '../../helpers/tree.ts'

it('says of a mount that is being made that its group is given by the walk that is under way', async () => {
  const stage = memoryStage()
  const source = `${stage.top}/volumes/data`
  makeTree(stage.fs, source, SIX_FILES)
  await stage.mount('a', { source, ownership: 'walk', 'kubernetes.io/fsGroup': '2000' })
  const [before] = (await status(stage.session())).mounts
  expect(before).toMatchObject({ ownership: 'walk', why: 'asked for', state: 'healthy' })
  const session = stage.session()
  const record = mountRecords.read(session, stage.podDirectory('a'))
  if (record?.volume === undefined) throw new Error('no record of the mount')
  mountRecords.write(session, { ...record, given: { by: 'none' }, mounted: undefined })
  using _ = await holdPlace(session, volumePlace(session, record.volume))
  const [during] = (await status(stage.session())).mounts
  expect(during).toMatchObject({ ownership: 'walk', why: 'under way', since: null, walk: { visited: 0 } })
})
