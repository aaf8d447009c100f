import { expect, it } from 'vitest'
import type { GcDocument } from '../../src/cli/commands/gc.ts'
import { runVerb } from '../../src/cli/commands/index.ts'
import { listMountRecordDirectories, listVolumesWithRecords } from '../../src/state/record-directories.ts'
import { memoryStage, type Stage } from '../helpers/stage.ts'
import { groups, listTree, makeTree, modes, SIX_FILES } from '../helpers/tree.ts'
import { Killed } from '../memory-host/world.ts'

const GC = { verb: 'gc', isDry: false, forget: undefined } as const

/** A pod that went without an unmount and has a pending restore, and a volume that was fully restored. */
async function arrange(): Promise<Stage> {
  const stage = memoryStage()
  const options = { ownership: 'walk', 'kubernetes.io/fsGroup': '2000' }
  for (const name of ['pending', 'done']) makeTree(stage.fs, `${stage.top}/volumes/${name}`, SIX_FILES)
  await stage.mount('b', { ...options, source: `${stage.top}/volumes/done` })
  await stage.unmount('b')
  const target = { directory: `${stage.top}/volumes/done` }
  await runVerb(stage.session(), { verb: 'restore', target, isDry: false, isForced: false })
  await stage.mount('a', { ...options, source: `${stage.top}/volumes/pending`, restoreOnUnmount: 'true' })
  stage.reboot()
  stage.fs.rmSync(`${stage.top}/pods/a`, { recursive: true })
  return stage
}

const found = ({ fs, top }: Stage) => {
  const listed = listTree(fs, `${top}/volumes`)
  return { modes: modes(listed), groups: groups(listed) }
}

it('"modekeep gc" that crashes at any step removes no record with a pending restore, and the next gc completes', async () => {
  const original = memoryStage()
  for (const name of ['pending', 'done']) makeTree(original.fs, `${original.top}/volumes/${name}`, SIX_FILES)
  let deaths = 0
  for (let n = 0, isDead = true; isDead; n++) {
    const stage = await arrange()
    if (stage.world) stage.world.killAt = n
    isDead = await runVerb(stage.session(), GC).then(
      (document) => (document as GcDocument).items.some(({ action }) => action === 'failed'),
      (error) => {
        if (!(error instanceof Killed)) throw error
        return true
      },
    )
    deaths += Number(isDead)
    stage.world?.revive()
    const { items } = (await runVerb(stage.session(), GC)) as GcDocument
    expect(items.filter(({ action }) => action === 'failed' || action === 'kept')).toEqual([])
    expect(found(stage)).toEqual(found(original))
    expect(listVolumesWithRecords(stage)).toEqual([])
    expect(listMountRecordDirectories(stage)).toEqual([])
  }
  expect(deaths).toBeGreaterThan(30)
})
