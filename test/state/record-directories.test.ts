import { beforeEach, expect, it } from 'vitest'
import {
  listLeftoverFiles,
  listMountRecordDirectories,
  locateMountRecords,
  locateVolumeRecords,
} from '../../src/state/record-directories.ts'
import { memoryStage, type Stage } from '../helpers/stage.ts'

let stage: Stage
beforeEach(() => {
  stage = memoryStage()
})

const put = (path: string, ...names: string[]) => {
  stage.fs.mkdirSync(path, { recursive: true })
  for (const name of names) stage.fs.writeFileSync(`${path}/${name}`, '')
}
const listed = () =>
  listMountRecordDirectories(stage)
    .map(({ directory, hasRecord }) => [directory, hasRecord])
    .sort()

it('the record directories of mounts are listed for any mount path, and no other directory is', () => {
  const names = ['/pods/a/v', '/with space\n/é', `/${'x'.repeat(450)}`]
  for (const name of names) put(locateMountRecords(stage, name).path, 'record.json', 'lock')
  put(locateMountRecords(stage, '/pods/b/v').path, 'lock')
  put(`${stage.config.stateDir}/mounts/foreign`, 'record.json')
  expect(listed()).toEqual([...names.map((name) => [name, true]), ['/pods/b/v', false]].sort())
})

it('the record directory of a longer mount path does not count as a record of the shorter path', () => {
  const [short, long] = [`/${'x'.repeat(197)}`, `/${'x'.repeat(198)}`]
  put(locateMountRecords(stage, long).path, 'record.json')
  expect(listed()).toEqual([[long, true]])
  put(locateMountRecords(stage, short).path, 'lock')
  expect(listed()).toEqual([
    [short, false],
    [long, true],
  ])
  expect(listLeftoverFiles(stage, locateMountRecords(stage, short))).toEqual(['lock'])
  expect(listLeftoverFiles(stage, locateMountRecords(stage, long))).toBeUndefined()
})

it('a record directory whose name an interrupted call truncated is not listed as another mount', () => {
  const { path } = locateMountRecords(stage, `/${'é'.repeat(120)}`)
  const [first = ''] = path.slice(`${stage.config.stateDir}/mounts/`.length).split('/')
  put(`${stage.config.stateDir}/mounts/${first}`)
  const [place] = listMountRecordDirectories(stage)
  expect(place?.path).toBe(`${stage.config.stateDir}/mounts/${first}`)
  expect(listLeftoverFiles(stage, locateVolumeRecords(stage, 'none'))).toEqual([])
})
