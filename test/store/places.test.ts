import { beforeEach, expect, it } from 'vitest'
import { leftoverFiles, listMountPlaces, mountPlace, volumePlace } from '../../src/store/places.ts'
import { memoryStage, type Stage } from '../helpers/stage.ts'

const STATE = '/node/state'

let stage: Stage
beforeEach(() => {
  stage = memoryStage()
})

const put = (path: string, ...names: string[]) => {
  stage.fs.mkdirSync(path, { recursive: true })
  for (const name of names) stage.fs.writeFileSync(`${path}/${name}`, '')
}
const listed = () =>
  listMountPlaces(stage.host, STATE)
    .map(({ directory, hasRecord }) => [directory, hasRecord])
    .sort()

it('of mount directories are found whatever their names are, and nothing else is', () => {
  const names = ['/pods/a/v', '/with space\n/é', `/${'x'.repeat(450)}`]
  for (const name of names) put(mountPlace(STATE, name).path, 'record.json', 'lock')
  put(mountPlace(STATE, '/pods/b/v').path, 'lock')
  put(`${STATE}/mounts/foreign`, 'record.json')
  expect(listed()).toEqual([...names.map((name) => [name, true]), ['/pods/b/v', false]].sort())
})

it('of a longer name does not count as a file of the shorter one', () => {
  const [short, long] = [`/${'x'.repeat(197)}`, `/${'x'.repeat(198)}`]
  put(mountPlace(STATE, long).path, 'record.json')
  expect(listed()).toEqual([[long, true]])
  put(mountPlace(STATE, short).path, 'lock')
  expect(listed()).toEqual([
    [short, false],
    [long, true],
  ])
  expect(leftoverFiles(stage.host, mountPlace(STATE, short))).toEqual(['lock'])
  expect(leftoverFiles(stage.host, mountPlace(STATE, long))).toBeUndefined()
})

it('whose name was cut short where a call was interrupted has no directory that would be another one', () => {
  const { path } = mountPlace(STATE, `/${'é'.repeat(120)}`)
  const [first = ''] = path.slice(`${STATE}/mounts/`.length).split('/')
  put(`${STATE}/mounts/${first}`)
  const [place] = listMountPlaces(stage.host, STATE)
  expect(place?.path).toBe(`${STATE}/mounts/${first}`)
  expect(leftoverFiles(stage.host, volumePlace(STATE, 'none'))).toEqual([])
})
