import { expect, it } from 'vitest'
import { type HealView, planHeal } from '../../src/heal/plan.ts'
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
const died: MountRecord = { ...RECORD, mounted: undefined }
const ofOtherBoot: MountRecord = { ...RECORD, boot: 'a' }

it.each<[string, Partial<HealView>, string]>([
  ['the mount itself is checked as a call of kubelet would', { mounted: ours }, 'mount'],
  ['a mount that is gone is made again', {}, 'mount'],
  ['a mount on a file that is gone too', { target: 'file' }, 'mount'],
  ['a mount that does not answer is made again', { mounted: 'broken' }, 'mount'],
  ['without its directory it is over', { target: 'missing' }, 'forget'],
  ['a call that died is ended', { record: died }, 'mount'],
  ['a call that died, its directory gone, is over', { record: died, target: 'missing' }, 'forget'],
  ['a call that died below something unknown is left', { record: died, mounted: other }, 'leave'],
  ['a reboot ended it', { record: ofOtherBoot }, 'forget'],
  ['what was mounted since a reboot is left', { record: ofOtherBoot, mounted: ours }, 'leave'],
  ['an unknown mount over it is left', { mounted: other }, 'leave'],
  ['its own source over it is taken away', { mounted: other, showsSource: true }, 'mount'],
  ['a replacement that died is ended', { mounted: replaced }, 'mount'],
])('%s', (_what, over, action) => {
  const view: HealView = {
    record: RECORD,
    boot: 'b',
    mounted: undefined,
    target: 'directory',
    showsSource: false,
    ...over,
  }
  expect(planHeal(view).action).toBe(action)
})
