import fc, { type Arbitrary } from 'fast-check'
import { volumeOptionsSchema } from '../../src/config/request.ts'
import { anyText, damaged, prototypeNames } from './texts.ts'

export const KEYS = Object.keys(volumeOptionsSchema.shape)

/** What stands in options that work, and what nearly does. */
const WORDS: Readonly<Record<string, readonly string[]>> = {
  source: [
    '/srv/volumes/data',
    '/srv/volumes/a b',
    '/srv/volumes/é',
    '/srv/volumes',
    '/srv/volumesx',
    '/etc',
    '/srv/../etc',
  ],
  subPath: ['a', 'a/b', 'a/../b', '..', '/a', 'a/', '...'],
  mountOptions: ['ro', 'rw', 'noexec,nosuid', 'noatime,relatime', 'size=64m', 'size=', 'suid', 'mode=0770', ','],
  ownership: ['none', 'walk', 'idmap', 'auto', 'Walk', 'chown'],
  idmapFrom: ['0', '100', '-1', '4294967295', '01'],
  groupAccess: ['keep', 'grant'],
  fsGroupChangePolicy: ['OnRootMismatch', 'Always', 'Never'],
  restoreOnUnmount: ['true', 'false', 'yes'],
  setGid: ['root', 'true'],
  submounts: ['refuse', 'hide', 'include', 'show'],
  'kubernetes.io/fsType': ['', 'bind', 'tmpfs', 'ext4', 'nfs', 'cifs', 'fuse.sshfs', 'fuse.constructor', 'ext9'],
  'kubernetes.io/readwrite': ['rw', 'ro', 'rx'],
  'kubernetes.io/fsGroup': ['2000', '0', '-1', '+1', '1e3', '4294967295'],
  'kubernetes.io/mounterArgs.FsGroup': ['2000', '0', '2001'],
}

const valueFor = (key: string): Arbitrary<unknown> =>
  fc.oneof(
    { weight: 8, arbitrary: fc.constantFrom(...(WORDS[key] ?? ['default', 'v'])) },
    { weight: 1, arbitrary: anyText },
    { weight: 1, arbitrary: fc.jsonValue() },
  )

const knownEntry = fc.constantFrom(...KEYS).chain((key) => fc.tuple(fc.constant(key), valueFor(key)))
const otherEntry = fc.tuple(fc.oneof(anyText, prototypeNames, fc.constant('kubernetes.io/new')), fc.jsonValue())
const entries = fc.array(fc.oneof({ weight: 9, arbitrary: knownEntry }, { weight: 1, arbitrary: otherEntry }), {
  maxLength: 9,
})

/** One JSON object with these members in this order, with any names. Duplicate names stay duplicate. */
export function textOf(list: readonly (readonly [string, unknown])[]): string {
  return `{${list.map(([key, value]) => `${JSON.stringify(key)}:${JSON.stringify(value)}`).join(',')}}`
}

/** Options that are mostly accepted. */
export const goodEntries: Arbitrary<[string, string][]> = fc
  .record(
    {
      source: fc.constantFrom('/srv/volumes/data', '/srv/volumes/a b', '/srv/volumes/é/\u{1f600}', '/srv/volumes/"\\'),
      subPath: fc.constantFrom('a', 'a/b c', '...', 'é'),
      mountOptions: fc.subarray(['ro', 'noexec', 'nodiratime', 'nosymfollow', 'noatime']).map((list) => list.join()),
      ownership: fc.constantFrom('none', 'walk', 'idmap', 'auto'),
      idmapFrom: fc.nat({ max: 4294967294 }).map(String),
      groupAccess: fc.constantFrom('keep', 'grant'),
      fsGroupChangePolicy: fc.constantFrom('OnRootMismatch', 'Always'),
      restoreOnUnmount: fc.constantFrom('true', 'false'),
      setGid: fc.constant('root'),
      submounts: fc.constantFrom('refuse', 'hide', 'include'),
      'kubernetes.io/fsType': fc.constantFrom('', 'bind'),
      'kubernetes.io/readwrite': fc.constantFrom('ro', 'rw'),
      'kubernetes.io/mounterArgs.FsGroup': fc.nat({ max: 4294967294 }).map(String),
      'kubernetes.io/pod.name': anyText,
      'kubernetes.io/pod.namespace': fc.constantFrom('default', ''),
    },
    { requiredKeys: ['source'] },
  )
  .map((options) => Object.entries(options) as [string, string][])

/** What may stand in the place of kubelet's last argument. */
export const optionTexts: Arbitrary<string> = fc.oneof(
  { weight: 4, arbitrary: entries.map(textOf) },
  { weight: 2, arbitrary: goodEntries.map(textOf) },
  { weight: 2, arbitrary: damaged(fc.oneof(entries.map(textOf), goodEntries.map(textOf))) },
  { weight: 1, arbitrary: fc.json() },
  { weight: 1, arbitrary: anyText },
)
