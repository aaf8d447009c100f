import { expect, it } from 'vitest'
import { type HealPlan, type HealView, planHeal } from '../../src/heal/heal-plan.ts'
import type { MountRecord } from '../../src/store/mount-record.ts'
import { MOUNTED, READY } from '../helpers/mount-records.ts'

const RECORD: MountRecord = {
  ...READY,
  boot: 'b',
  mounted: { ...MOUNTED, mountId: '9' },
  replaces: { mountId: '8' },
}
const ours = { mountId: 9n, device: 5, inode: 2n, isDirectory: true }
const other = { ...ours, mountId: 10n }
const replaced = { ...ours, mountId: 8n }
const interrupted: MountRecord = { ...RECORD, mounted: undefined }
const ofOtherBoot: MountRecord = { ...RECORD, boot: 'a' }

it.each<[string, Partial<HealView>, HealPlan['state'], HealPlan['action']]>([
  ['the mount itself is checked as a call of kubelet would', { mounted: ours }, 'healthy', 'mount'],
  ['a mount that is gone is made again', {}, 'missing', 'mount'],
  ['a mount on a file that is gone too', { target: 'file' }, 'missing', 'mount'],
  ['a mount that does not respond is made again', { mounted: 'broken' }, 'stale', 'mount'],
  ['without its directory it is over', { target: 'missing' }, 'orphaned', 'forget'],
  ['an interrupted call is ended', { record: interrupted }, 'interrupted', 'mount'],
  [
    'an interrupted call, its directory gone, is over',
    { record: interrupted, target: 'missing' },
    'orphaned',
    'forget',
  ],
  ['an interrupted call below something unknown is left', { record: interrupted, mounted: other }, 'unknown', 'leave'],
  ['a reboot ended it', { record: ofOtherBoot }, 'missing', 'forget'],
  ['a reboot ended it, its unmount has to restore', { record: ofOtherBoot, awaitsRestore: true }, 'missing', 'leave'],
  ['what was mounted since a reboot is left', { record: ofOtherBoot, mounted: ours }, 'unknown', 'leave'],
  ['an unknown mount over it is left', { mounted: other }, 'unknown', 'leave'],
  ['its own source over it is taken away', { mounted: other, showsSource: true }, 'stale', 'mount'],
  ['an interrupted replacement is ended', { mounted: replaced }, 'interrupted', 'mount'],
])('%s', (_what, over, state, action) => {
  const view: HealView = {
    record: RECORD,
    boot: 'b',
    mounted: undefined,
    target: 'directory',
    showsSource: false,
    awaitsRestore: false,
    ...over,
  }
  expect(planHeal(view)).toMatchObject({ state, action })
})
