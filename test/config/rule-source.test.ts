import { describe, expect, it } from 'vitest'
import {
  type AllowRule,
  areSourceEntriesOverlapping,
  DEFAULT_ALLOWED_FS_TYPES,
  findRulePermittingWrites,
  isSourceEntryWithin,
  parseSourceEntryDirectory,
} from '../../src/config/rule.ts'

describe('findRulePermittingWrites', () => {
  it.each<[AllowRule, string, boolean]>([
    // Directories below it can be mounted, not files in it.
    [{ sources: ['/srv/*'] }, '/srv/disk.img', false],
    [{ sources: ['/srv/*'] }, '/srv/a/disk.img', true],
    [{ sources: ['/srv/*'] }, '/srv/a/b/disk.img', true],
    [{ sources: ['/srv/*'] }, '/srv2/a/disk.img', false],
    [{ sources: ['/srv'] }, '/srv/disk.img', true],
    [{ sources: ['/srv/disk.img'] }, '/srv/disk.img', false],
    [{ sources: ['/*'] }, '/disk.img', false],
    [{ sources: ['/*'] }, '/dev/sdb', true],
    [{ sources: ['/srv/{namespace}/*'] }, '/srv/shop/disk.img', false],
    [{ sources: ['/srv/{namespace}/*'] }, '/srv/shop/a/disk.img', true],
    [{ sources: ['/srv/{namespace}/*'] }, '/srv/.images/a/disk.img', false],
    [{ sources: ['/srv/{namespace}'] }, '/srv/shop/disk.img', true],
    [{ sources: ['nfs:/srv/*', '//srv/*', 'srv/*'] }, '/srv/a/disk.img', false],
    [{}, '/disk.img', true],
    [{ sources: ['/srv/*'], readOnly: true }, '/srv/a/disk.img', false],
    [{ sources: ['/srv/*'], fsTypes: ['ext4', 'tmpfs'] }, '/srv/a/disk.img', false],
    [{ sources: ['/srv/*'], fsTypes: ['fuse.bindfs'] }, '/srv/a/disk.img', true],
  ])('a pod can write to a file by rule %j: %s: %s', (rule, path, expected) => {
    expect(findRulePermittingWrites([{ fsTypes: [] }, rule], path, DEFAULT_ALLOWED_FS_TYPES)).toBe(
      expected ? rule : undefined,
    )
  })
})

it.each([
  ['/a/b', '/a/*', true],
  ['/a/b/*', '/a/*', true],
  ['/a/*', '/a/*', true],
  ['/a', '/a/*', false],
  ['/a/*', '/a', false],
  ['/v/{namespace}/*', '/v/*', true],
  ['/v/*', '/v/{namespace}/*', false],
  ['/ab', '/a/*', false],
  ['nfs:/a', '/*', false],
])('the sources of rule entry %s are all within entry %s: %s', (entry, wide, expected) => {
  expect(isSourceEntryWithin(entry, wide)).toBe(expected)
})

it.each([
  ['/a/*', '/a/b/*', true],
  ['/a/b', '/a', true],
  ['/a', '/ab', false],
  ['/v/one/*', '/v/two/*', false],
  ['/*', '/v/two/*', true],
  ['nfs:/*', '/*', false],
])('rule entries %s and %s overlap: %s', (one, other, expected) => {
  expect([areSourceEntriesOverlapping(one, other), areSourceEntriesOverlapping(other, one)]).toEqual([
    expected,
    expected,
  ])
})

it.each([
  ['/v/{namespace}/*', '/v'],
  ['/v/{namespace}', '/v'],
  ['/{namespace}/*', '/'],
  ['/*', '/'],
  ['/a/b', '/a/b'],
  ['nfs:/a/*', undefined],
])('the node directory of rule entry %s is %s', (entry, directory) => {
  expect(parseSourceEntryDirectory(entry)).toBe(directory)
})
