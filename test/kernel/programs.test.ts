import { expect, it } from 'vitest'
import { formatProgramPackage } from '../../src/kernel/linux/programs.ts'

it.each([
  ['mount.nfs', 'nfs-common (Debian) or nfs-utils (RPM)'],
  ['bindfs', 'bindfs'],
  ['nosuchprogram', undefined],
  ['constructor', undefined],
])('the package of %s is %s', (program, name) => {
  expect(formatProgramPackage(program)).toBe(name)
})
