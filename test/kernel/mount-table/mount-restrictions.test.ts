import { expect, it } from 'vitest'
import { formatRestrictions, restrictOptions } from '../../../src/kernel/mount-table/mount-flags.ts'

it('the restrictions of a mount are formatted as mount options', () => {
  expect(formatRestrictions(0)).toEqual([])
  expect(formatRestrictions(0x1 | 0x2 | 0x4 | 0x8)).toEqual(['ro', 'nosuid', 'nodev', 'noexec'])
  expect(formatRestrictions(0x100000 | 0x200000 | 0x10)).toEqual(['nosymfollow', 'noatime'])
})

it('a restriction replaces the option that contradicts it, and no option is duplicated', () => {
  expect(restrictOptions(['rbind', 'rprivate', 'rw'], ['ro', 'nosuid'])).toEqual(['rbind', 'rprivate', 'ro', 'nosuid'])
  expect(restrictOptions(['rbind', 'ro', 'nosuid'], ['nosuid', 'nodev'])).toEqual(['rbind', 'ro', 'nosuid', 'nodev'])
  expect(restrictOptions(['rbind', 'exec', 'suid'], [])).toEqual(['rbind', 'exec', 'suid'])
})
