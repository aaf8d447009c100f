import { expect, it } from 'vitest'
import { formatSource, getSourcePath, parseSource, type VolumeSource } from '../../src/config/source.ts'

it.each<[string, VolumeSource]>([
  ['', { type: 'none' }],
  ['/srv/a', { type: 'local', path: '/srv/a' }],
  ['/srv/../a/', { type: 'local', path: '/srv/../a/' }],
  ['/dev/sda1', { type: 'local', path: '/dev/sda1' }],
  ['//', { type: 'local', path: '//' }],
  ['//server', { type: 'local', path: '//server' }],
  ['//server/../share', { type: 'local', path: '//server/../share' }],
  ['//Server/share/a b', { type: 'share', server: 'Server', path: '/share/a b' }],
  ['host:/', { type: 'export', server: 'host', path: '/' }],
  ['[fe80::1%eth0]:/export/a', { type: 'export', server: '[fe80::1%eth0]', path: '/export/a' }],
  ['host:/a,b', { type: 'text', text: 'host:/a,b' }],
  ['me@host:/a', { type: 'text', text: 'me@host:/a' }],
  ['remote:bucket/a', { type: 'text', text: 'remote:bucket/a' }],
  ['tmpfs', { type: 'text', text: 'tmpfs' }],
])('the source %j is parsed, and formatted as it was', (text, source) => {
  expect(parseSource(text)).toEqual(source)
  expect(formatSource(source)).toBe(text === '' ? undefined : text)
  expect(getSourcePath(source)).toBe(source.type === 'local' ? text : undefined)
})

it.each<[string, VolumeSource]>([
  ['/dev/disk/by-uuid/1', { type: 'device', path: '/dev/disk/by-uuid/1' }],
  ['/srv/image', { type: 'image', path: '/srv/image' }],
  ['//server/share', { type: 'share', server: 'server', path: '/share' }],
])('the source %j of a disk is parsed', (text, source) => {
  expect(parseSource(text, true)).toEqual(source)
})
