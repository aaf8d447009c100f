import { expect, it } from 'vitest'
import { walkProgressRecords } from '../../src/state/process-records.ts'
import { memoryStage } from '../helpers/stage.ts'

const PROGRESS = { volume: 'v', pid: 12, at: 1_790_000_000_000, visited: 40_000, changed: 39_999 }
const NONE = { record: undefined, problem: undefined }

it('the progress of a walk can be read while it runs', () => {
  const store = memoryStage()
  expect(walkProgressRecords.find(store, 'v')).toEqual(NONE)
  walkProgressRecords.write(store, PROGRESS)
  expect(walkProgressRecords.find(store, 'v').record).toEqual(PROGRESS)
  walkProgressRecords.remove(store, 'v')
  walkProgressRecords.remove(store, 'v')
  expect(walkProgressRecords.find(store, 'v')).toEqual(NONE)
})

it('an invalid progress record is read as missing', () => {
  const store = memoryStage()
  walkProgressRecords.write(store, PROGRESS)
  store.host.files.replace(`${store.config.stateDir}/ownership/v/progress.json`, '{"pid":"12"}')
  expect(walkProgressRecords.find(store, 'v').record).toBeUndefined()
})
