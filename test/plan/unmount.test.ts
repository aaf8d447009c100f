import { expect, it } from 'vitest'
import { planUnmount } from '../../src/plan/unmount.ts'
import type { MountRecord } from '../../src/state/mount-record.ts'

const RECORD: MountRecord = {
  format: 1,
  phase: 'ready',
  boot: 'boot-1',
  directory: '/pods/p/v',
  pod: 'n/p',
  request: '{}',
  source: '/srv/a',
  fsType: 'bind',
  volume: 'fs1-2-3',
  walkGroup: 2000,
  restoreOnUnmount: false,
  mountId: '77',
}
const RESTORING: MountRecord = { ...RECORD, restoreOnUnmount: true }
const PLAIN = [{ do: 'detach-all' }, { do: 'forget' }]
const RESTORE = [{ do: 'detach-all' }, { do: 'restore-volume', volume: 'fs1-2-3', source: '/srv/a' }, { do: 'forget' }]

it.each<[string, MountRecord | undefined, boolean, object[]]>([
  ['nothing recorded', undefined, true, PLAIN],
  ['a record', RECORD, true, PLAIN],
  ['a record of a call that died', { ...RECORD, phase: 'preparing', mountId: '' }, true, PLAIN],
  ['a record of another boot', { ...RECORD, boot: 'boot-0' }, true, PLAIN],
  ['restoreOnUnmount and the last mount', RESTORING, true, RESTORE],
  ['restoreOnUnmount, last, a call that died', { ...RESTORING, phase: 'preparing', mountId: '' }, true, RESTORE],
  ['restoreOnUnmount, last, of another boot', { ...RESTORING, boot: 'boot-0' }, true, RESTORE],
  ['restoreOnUnmount while another mount is left', RESTORING, false, PLAIN],
  ['restoreOnUnmount of a volume that went with its mount', { ...RESTORING, volume: '' }, true, PLAIN],
])('an unmount call with %s detaches first and forgets last', (_what, record, last, steps) => {
  expect(planUnmount(record, last)).toEqual(steps)
})
