import { expect, it } from 'vitest'
import { planUnmount } from '../../src/mount/plan-unmount.ts'
import type { MountRecord } from '../../src/store/mount-record.ts'

const RECORD: MountRecord = {
  format: 1,
  phase: 'ready',
  boot: 'boot-1',
  directory: '/pods/p/v',
  pod: 'n/p',
  request: '{}',
  source: '/srv/a',
  fsType: 'bind',
  identity: '',
  volume: 'fs1-2-3',
  device: 5,
  ownership: 'walk',
  why: 'asked for',
  walkGroup: 2000,
  mappedFrom: -1,
  since: 1,
  mountId: '77',
  replaces: '',
  replacesStaging: '',
  namespace: '',
  staging: '',
  replacedDaemons: [],
  hadSecrets: false,
}
const CLEAR = [{ do: 'detach-all' }, { do: 'set-target', type: 'directory' }]
const NOTHING = [...CLEAR, { do: 'forget', volume: '' }]
const PLAIN = [...CLEAR, { do: 'forget', volume: 'fs1-2-3' }]
const RESTORE = [
  ...CLEAR,
  { do: 'restore-volume', volume: 'fs1-2-3', source: '/srv/a' },
  { do: 'forget', volume: 'fs1-2-3' },
]

const DIED: MountRecord = { ...RECORD, phase: 'preparing', mountId: '' }
const EARLIER: MountRecord = { ...RECORD, boot: 'boot-0' }
const GONE: MountRecord = { ...RECORD, volume: '', device: -1 }

it.each<[string, MountRecord | undefined, boolean, object[]]>([
  ['nothing recorded and nothing owed', undefined, false, NOTHING],
  ['nothing recorded, whatever is owed', undefined, true, NOTHING],
  ['a record', RECORD, false, PLAIN],
  ['a record of a call that died', DIED, false, PLAIN],
  ['a record of another boot', EARLIER, false, PLAIN],
  ['a volume that went with its mount', GONE, false, NOTHING],
  ['a restore owed', RECORD, true, RESTORE],
  ['a restore owed, a call that died', DIED, true, RESTORE],
  ['a restore owed, a record of another boot', EARLIER, true, RESTORE],
  ['a restore owed though its own pod gave no group', { ...RECORD, walkGroup: -1 }, true, RESTORE],
  ['a restore owed for a volume that went with its mount', GONE, true, NOTHING],
])('an unmount call with %s detaches first and forgets last', (_what, record, owed, steps) => {
  expect(planUnmount(record, owed)).toEqual(steps)
})
