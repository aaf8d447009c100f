import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { MODEKEEPS_STATE } from '../node/drivers.ts'
import type { Case } from './case.ts'
import { control, type Facts, FSGROUP, look, makeFiles, modes, SIX, SIX_MODES } from './tree.ts'

const withoutTimes = (facts: Map<string, Facts>) => [...facts].map(([name, { mode, group }]) => [name, mode, group])

const leavesNothing: Case = {
  name: 'a deleted pod leaves no mount, record or directory, and restoreOnUnmount returns the first state',
  when: 'restarts',
  small: true,
  async run({ node, threeRestarts }) {
    const source = makeFiles(`${node.volumes}/deleted`, SIX)
    const control_ = makeFiles(`${node.volumes}/deleted-naive`, SIX)
    const before = look(source)
    const options = { source, ownership: 'walk', groupAccess: 'grant', restoreOnUnmount: 'true' }
    const pods = [
      await node.run({ name: 'deleted', driver: 'modekeep', options, fsGroup: FSGROUP }),
      await node.run({ name: 'deleted-naive', driver: 'naive', options: { source: control_ }, fsGroup: FSGROUP }),
    ]
    const granted = modes(look(source))
    await threeRestarts(...pods)
    await node.remove(...pods)

    assert.notDeepEqual(granted, SIX_MODES, 'grant has changed nothing')
    assert.deepEqual(withoutTimes(look(source)), withoutTimes(before))
    const [ours] = pods
    assert(ours && ours.layers().length === 0, 'a mount is left')
    assert.deepEqual(recordsWith(ours.uid), [])
    control('group', look(control_).get('test1')?.group, FSGROUP)
    return { modekeep: `${modes(look(source)).join(' ')}, nothing left`, naive: modes(look(control_)).join(' ') }
  },
}

/** Files and directories of modekeep's state that are about mounts of this pod. */
function recordsWith(uid: string): string[] {
  const encoded = encodeURIComponent(`/pods/${uid}/`)
  return execFileSync('find', [`${MODEKEEPS_STATE}/mounts`, '-path', `*${encoded}*`])
    .toString()
    .split('\n')
    .filter(Boolean)
}

export const DELETION = [leavesNothing]
