import { expect, it } from 'vitest'
import { type HealPlan, type HealPlanInput, planMountHeal } from '../../src/repair/heal-plan.ts'
import type { MountRecord } from '../../src/state/mount-record.ts'
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

it.each<[string, Partial<HealPlanInput>, HealPlan['state'], HealPlan['action']]>([
  ['a mount is checked like by a mount call', { mounted: ours }, 'healthy', 'mount'],
  ['a missing mount is made again', {}, 'missing', 'mount'],
  ['a missing mount on a file is made again, too', { target: 'file' }, 'missing', 'mount'],
  ['an unresponsive mount is replaced', { mounted: 'broken' }, 'stale', 'mount'],
  ['a record without its mount directory is removed', { target: 'missing' }, 'orphaned', 'forget'],
  ['an interrupted call is completed', { record: interrupted }, 'interrupted', 'mount'],
  [
    'an interrupted call without its mount directory is forgotten',
    { record: interrupted, target: 'missing' },
    'orphaned',
    'forget',
  ],
  [
    'an interrupted call below an unknown mount is skipped',
    { record: interrupted, mounted: other },
    'unknown',
    'leave',
  ],
  ['a record of an earlier boot is forgotten', { record: ofOtherBoot }, 'missing', 'forget'],
  [
    'a record of an earlier boot with a pending restore is kept',
    { record: ofOtherBoot, awaitsRestore: true },
    'missing',
    'leave',
  ],
  ['a mount made since a reboot is skipped', { record: ofOtherBoot, mounted: ours }, 'unknown', 'leave'],
  ['an unknown mount on top is skipped', { mounted: other }, 'unknown', 'leave'],
  ['a second mount of its own source is unmounted', { mounted: other, showsSource: true }, 'stale', 'mount'],
  ['an interrupted replacement is completed', { mounted: replaced }, 'interrupted', 'mount'],
])('%s', (_what, over, state, action) => {
  const view: HealPlanInput = {
    record: RECORD,
    boot: 'b',
    mounted: undefined,
    target: 'directory',
    showsSource: false,
    awaitsRestore: false,
    ...over,
  }
  expect(planMountHeal(view)).toMatchObject({ state, action })
})
