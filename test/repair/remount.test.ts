import { expect, it } from 'vitest'
import { createFault } from '../../src/errors/fault.ts'
import { Refusal } from '../../src/errors/refusal.ts'
import { judgeMount } from '../../src/repair/heal-plan.ts'
import { remountVolume } from '../../src/repair/heal-record.ts'
import { HEAL_ACTIONS, MOUNT_STATES, toFailedHealOutcome } from '../../src/repair/state.ts'
import { listReadableMountRecords } from '../../src/state/mount-record.ts'
import { memoryStage } from '../helpers/stage.ts'
import { makeTree } from '../helpers/tree.ts'

it.each([
  ['healthy', new Refusal(createFault('internal', 'its source is gone')), 'stale'],
  ['healthy', new Error('EIO'), 'unknown'],
  ['missing', new Refusal(createFault('internal', 'its source is gone')), 'missing'],
  ['interrupted', 'a text', 'interrupted'],
] as const)('after a failure (%s) a mount that is %s is reported as %s', (state, error, told) => {
  const reason = error instanceof Error ? error.message : error
  expect(toFailedHealOutcome(state, error)).toEqual({
    state: told,
    action: 'failed',
    reason,
    ...(error instanceof Refusal && { code: 'internal' }),
  })
})

it('heal reports a missing mount that had secrets, and does not mount the volume', async () => {
  const stage = memoryStage()
  makeTree(stage.fs, `${stage.top}/volumes/one`, ['file first 0644'])
  await stage.mount('a', { source: `${stage.top}/volumes/one` })
  const [record] = listReadableMountRecords(stage)
  if (!record) throw new Error('no record')
  const secretive = { ...record, hadSecrets: true }
  const outcome = () =>
    judgeMount(stage.session(), secretive, (judged) => remountVolume(stage.session(), judged, false))
  expect(await outcome()).toMatchObject({ state: 'healthy', action: 'none', reason: '' })
  const parent = stage.host.inodes.openTrusted(stage.podDirectory('a').replace(/\/v$/, ''))
  stage.host.mounts.detach(parent, Buffer.from('v'))
  expect(await outcome()).toMatchObject({
    state: 'missing',
    action: 'failed',
    reason: expect.stringMatching(/^it is not mounted, and its secrets .*delete the pod/),
  })
  expect(stage.layers('a')).toEqual([])
})

it('no word is both a mount state and an action of heal', () => {
  expect(MOUNT_STATES).toEqual([
    'healthy',
    'missing',
    'stale',
    'changed',
    'partial',
    'orphaned',
    'interrupted',
    'unknown',
    'busy',
    'in progress',
  ])
  expect(HEAL_ACTIONS).toEqual(['none', 'mounted', 'replaced', 'unmounted', 'forgotten', 'failed'])
})
