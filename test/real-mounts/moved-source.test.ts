import { afterEach, beforeEach, expect, it } from 'vitest'
import { listReadableMountRecords } from '../../src/state/mount-record.ts'
import { onKernelStages, type Stage } from '../helpers/stage.ts'
import { makeTree } from '../helpers/tree.ts'

onKernelStages('a mount whose source has changed', (open) => {
  let stage: Stage
  beforeEach(() => {
    stage = open()
    makeTree(stage.fs, `${stage.top}/volumes/one`, ['file first 0644'])
  })
  afterEach(() => stage.close())

  const bind = (name: string) => ({ source: `${stage.top}/volumes/${name}` })
  const names = (pod: string) => Object.keys(stage.shown(pod)).sort()
  const records = () => listReadableMountRecords(stage)

  it('is replaced if the source directory was deleted and created again', async () => {
    await stage.mount('a', bind('one'))
    stage.fs.rmSync(`${stage.top}/volumes/one`, { recursive: true })
    makeTree(stage.fs, `${stage.top}/volumes/one`, ['file other 0644'])
    await stage.mount('a', bind('one'))
    expect(stage.noted).toMatchObject({ decision: 'replace', reason: 'the source is another directory now' })
    expect(names('a')).toEqual(['.', 'other'])
  })

  it('stays if the source is missing, and the message reports it', async () => {
    await stage.mount('a', bind('one'))
    stage.fs.renameSync(`${stage.top}/volumes/one`, `${stage.top}/volumes/moved`)
    await expect(stage.mount('a', bind('one'))).rejects.toThrow(/does not exist on this node/)
    expect(names('a')).toEqual(['.', 'first'])
    expect(records()).toHaveLength(1)
  })
})
