import { expect, it, vi } from 'vitest'
import { SystemError } from '../../src/kernel/host.ts'
import { memoryStage } from '../helpers/stage.ts'
import { makeTree, SIX_FILES } from '../helpers/tree.ts'

/** Makes the attach of the first mounts fail as that of a deleted source does. */
function stageWithDeletions(failures: number) {
  const stage = memoryStage()
  const source = `${stage.top}/volumes/data`
  makeTree(stage.fs, source, SIX_FILES)
  const { mounts } = stage.host
  let attempts = 0
  stage.host.mounts = {
    ...mounts,
    attach(tree, target) {
      attempts++
      if (attempts <= failures) throw new SystemError('move_mount', 'ENOENT', 'the mount directory')
      mounts.attach(tree, target)
    },
  }
  return { stage, mount: () => stage.mount('a', { source, ownership: 'none' }), attempts: () => attempts }
}

it('a mount whose source is deleted ten times during the attempts succeeds with the next one', async () => {
  const { stage, mount, attempts } = stageWithDeletions(10)
  await mount()
  expect([attempts(), stage.layers('a').length]).toEqual([11, 1])
})

it('a mount whose source is deleted at each attempt is refused after more than ten', async () => {
  let now = 0
  using _ = vi.spyOn(performance, 'now').mockImplementation(() => {
    now += 100
    return now
  })
  const { stage, mount, attempts } = stageWithDeletions(Number.POSITIVE_INFINITY)
  await expect(mount()).rejects.toThrow('was deleted repeatedly while it was being mounted: stop what replaces it')
  expect(attempts()).toBeGreaterThan(10)
  expect(stage.layers('a')).toEqual([])
})
