import { expect, it } from 'vitest'
import { formatMountRestrictions, restrictMountOptions } from '../../../src/kernel/mount-table/mount-flags.ts'

it('the restrictions of a mount are formatted as mount options', () => {
  expect(formatMountRestrictions(0)).toEqual([])
  expect(formatMountRestrictions(0x1 | 0x2 | 0x4 | 0x8)).toEqual(['ro', 'nosuid', 'nodev', 'noexec'])
  expect(formatMountRestrictions(0x100000 | 0x200000 | 0x10)).toEqual(['nosymfollow', 'noatime'])
})

it('a restriction replaces the option that contradicts it, and no option is duplicated', () => {
  expect(restrictMountOptions(['rbind', 'rprivate', 'rw'], ['ro', 'nosuid'])).toEqual([
    'rbind',
    'rprivate',
    'ro',
    'nosuid',
  ])
  expect(restrictMountOptions(['rbind', 'ro', 'nosuid'], ['nosuid', 'nodev'])).toEqual([
    'rbind',
    'ro',
    'nosuid',
    'nodev',
  ])
  expect(restrictMountOptions(['rbind', 'exec', 'suid'], [])).toEqual(['rbind', 'exec', 'suid'])
})
