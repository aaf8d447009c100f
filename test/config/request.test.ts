import { describe, expect, it } from 'vitest'
import { DEFAULT_CONFIG } from '../../src/config/defaults.ts'
import { parseFlexVolumeRequest } from '../../src/config/request.ts'
import { renderFault } from '../../src/errors/fault.ts'
import { Refusal } from '../../src/errors/refusal.ts'
import { volumeKindLookup } from '../../src/volume/index.ts'
import { FS_GROUP, NO_FS_GROUP } from '../helpers/mount-records.ts'

const DIR = '/pods/p/volumes/modekeep~fs/v'
const CONFIG = { ...DEFAULT_CONFIG, allow: [{ sources: ['/srv/volumes/*'] }] }

function read(options: Record<string, unknown> | string, config = CONFIG) {
  return parseFlexVolumeRequest(
    DIR,
    typeof options === 'string' ? options : JSON.stringify(options),
    config,
    volumeKindLookup,
  )
}

function faultsOf(options: Record<string, unknown> | string, config = CONFIG): readonly string[] {
  try {
    read(options, config)
  } catch (error) {
    if (error instanceof Refusal) return error.faults.map((fault) => renderFault(fault))
    throw error
  }
  throw new Error('not refused')
}

const FRESH = {
  directory: DIR,
  source: { type: 'local', path: '/srv/volumes/data' },
  fsType: 'bind',
  mountOptions: [],
  readOnly: false,
  ownership: 'none',
  fsGroup: NO_FS_GROUP,
  restoreOnUnmount: false,
}

describe('a request', () => {
  it('a request with only the option source gets defaults for all other options', () => {
    expect(read({ source: '/srv/volumes/data' })).toEqual(FRESH)
  })

  it('a call recorded from kubelet 1.20.2 is parsed', () => {
    const recorded =
      '{"kubernetes.io/fsType":"","kubernetes.io/mounterArgs.FsGroup":"2000","kubernetes.io/pod.name":"p-node",' +
      '"kubernetes.io/pod.namespace":"default","kubernetes.io/pod.uid":"8c03","kubernetes.io/pvOrVolumeName":"v",' +
      '"kubernetes.io/readwrite":"rw","kubernetes.io/serviceAccount.name":"","source":"/srv/volumes/data"}'
    expect(read(recorded)).toEqual({ ...FRESH, fsGroup: FS_GROUP, pod: 'default/p-node', namespace: 'default' })
  })

  it("a request has the pod's options, and no secret", () => {
    const request = read({
      source: '/srv/volumes/data',
      'kubernetes.io/fsType': 'bind',
      'kubernetes.io/fsGroup': '7',
      mountOptions: ',noatime,,noexec,',
      ownership: 'walk',
      groupAccess: 'keep',
      fsGroupChangePolicy: 'Always',
      restoreOnUnmount: 'true',
    })
    expect(request).toEqual({
      ...FRESH,
      fsGroup: { groupId: 7, access: 'keep', changePolicy: 'Always' },
      mountOptions: ['noatime', 'noexec'],
      ownership: 'walk',
      restoreOnUnmount: true,
    })
    const share = read({
      source: '//server/share',
      'kubernetes.io/fsType': 'cifs',
      'kubernetes.io/secret/password': 'aHVudGVyMg==',
    })
    expect(JSON.stringify(share)).not.toContain('aHV')
  })

  it.each([
    [{ 'kubernetes.io/readwrite': 'rw' }, false],
    [{ 'kubernetes.io/readwrite': 'ro' }, true],
    [{ mountOptions: 'ro' }, true],
    [{ mountOptions: 'noatime,ro,noexec' }, true],
    [{ mountOptions: 'nosymfollow' }, false],
    [{ mountOptions: 'rw' }, false],
    [{ 'kubernetes.io/readwrite': 'rw', mountOptions: 'ro' }, true],
    [{ 'kubernetes.io/readwrite': 'ro', mountOptions: 'ro' }, true],
  ])('a request with %j is read-only: %s', (options, readOnly) => {
    expect(read({ source: '/srv/volumes/data', ...options }).readOnly).toBe(readOnly)
  })

  it.each([
    [{}, undefined],
    [{ 'kubernetes.io/pod.name': 'p' }, 'p'],
    [{ 'kubernetes.io/pod.namespace': 'n', 'kubernetes.io/pod.name': 'p' }, 'n/p'],
  ])('a request with %j is named after its pod: %j', (options, pod) => {
    expect(read({ source: '/srv/volumes/data', ...options }).pod).toBe(pod)
  })

  it('the name of a pod is limited to the longest valid one', () => {
    const podOf = (namespace: number, name: number) =>
      read({
        source: '/srv/volumes/data',
        'kubernetes.io/pod.namespace': 'n'.repeat(namespace),
        'kubernetes.io/pod.name': 'p'.repeat(name),
      }).pod
    expect(podOf(63, 253)).toBe(`${'n'.repeat(63)}/${'p'.repeat(253)}`)
    expect(podOf(63, 254)).toBe(podOf(63, 253))
    expect(podOf(0, 4095)).toBe('p'.repeat(317))
    expect(podOf(4095, 1)).toBe('n'.repeat(317))
  })
})

describe('a refused request', () => {
  it('a refusal reports every fault of the call, each with its key, its value and the remedy', () => {
    const text =
      '{"kubernetes.io/fsGroup":"02000","sourc":"/srv/volumes/data","ownership":"chown","restoreOnUnmount":"yes",' +
      '"mountOptions":5,"kubernetes.io/readwrite":"rw","kubernetes.io/readwrite":"ro","kubernetes.io/secret/k":7}'
    expect(faultsOf(text)).toEqual([
      'option "kubernetes.io/readwrite" is given twice: keep one',
      'option "kubernetes.io/secret/k" must be a JSON string',
      'unknown ["sourc"]: the options are source, subPath, mountOptions, ownership, idmapFrom, groupAccess, fsGroupChangePolicy, restoreOnUnmount, setGid, submounts',
      'option "mountOptions" is 5: write it as a JSON string',
      'option "ownership" is "chown": use one of none, walk, idmap, auto',
      'option "restoreOnUnmount" is "yes": use one of true, false',
      'option "kubernetes.io/fsGroup" is "02000": a group is a decimal number from 0 to 4294967294 without sign, leading zeros or exponent; ' +
        "set the pod's securityContext.fsGroup to one, or leave it out",
      'the Secret has "k", which bind does not take: it takes none, leave out secretRef',
    ])
  })

  it('a refusal reports faults of the source, the mount options and the group together', () => {
    expect(
      faultsOf({ source: '/etc/', mountOptions: 'noatime,relatime,suid=1', 'kubernetes.io/mounterArgs.FsGroup': 'x' }),
    ).toEqual([
      'option "kubernetes.io/mounterArgs.FsGroup" is "x": a group is a decimal number from 0 to 4294967294 without sign, leading zeros or exponent; ' +
        "set the pod's securityContext.fsGroup to one, or leave it out",
      'option "source" is "/etc/": write an absolute path without "..", ".", "//" or a trailing slash',
      'option "mountOptions" has both noatime and relatime: keep one',
      'option "mountOptions" has "suid=1": write suid without a value',
    ])
  })

  it.each([
    ['groupAccess', 'keep', 'walk', 'idmap'],
    ['fsGroupChangePolicy', 'Always', 'walk', 'idmap'],
    ['fsGroupChangePolicy', 'OnRootMismatch', 'walk', 'idmap'],
    ['restoreOnUnmount', 'true', 'walk', 'idmap'],
    ['idmapFrom', '0', 'idmap', 'walk'],
    ['setGid', 'root', 'idmap', 'walk'],
  ])('option %s with value %s is refused without ownership %s', (key, value, needed, other) => {
    const fault = (ownership: string) =>
      `option "${key}" is "${value}" but ownership is "${ownership}": set ownership to "${needed}" or "auto", or leave ${key} out`
    const source = '/srv/volumes/data'
    expect(faultsOf({ source, [key]: value })).toEqual([fault('none')])
    expect(faultsOf({ source, ownership: 'none', [key]: value })).toEqual([fault('none')])
    expect(faultsOf({ source, ownership: other, [key]: value })).toEqual([fault(other)])
    for (const ownership of [needed, 'auto']) read({ source, ownership, [key]: value })
  })

  it.each([['-1'], ['02000'], ['4294967295'], ['root'], ['']])(
    'a request with idmapFrom %j, which is no group, is refused',
    (idmapFrom) => {
      expect(faultsOf({ source: '/srv/volumes/data', ownership: 'idmap', idmapFrom })).toEqual([
        `option "idmapFrom" is "${idmapFrom}": write the group that the files have on disk, a decimal number from 0 to 4294967294`,
      ])
    },
  )

  it('an option with the value "false" contradicts no other option', () => {
    expect(read({ source: '/srv/volumes/data', restoreOnUnmount: 'false' }).restoreOnUnmount).toBe(false)
  })

  it.each<[Record<string, string>, string]>([
    [
      { ownership: 'walk', submounts: 'include' },
      'option "submounts" is "include" but ownership is "walk", which concerns the source\'s own file system alone: leave ownership out',
    ],
    [
      { 'kubernetes.io/fsType': 'ext4', submounts: 'hide' },
      'option "submounts" is "hide" but fsType is "ext4": leave submounts out, it is for directories of the node (bind)',
    ],
    [{ submounts: 'show' }, 'option "submounts" is "show": use one of refuse, hide, include'],
  ])('option submounts is refused if it has no effect: %j', (options, fault) => {
    expect(faultsOf({ source: '/srv/volumes/data', ...options })).toEqual([fault])
  })

  it('option submounts is undefined by default, and a directory of the node accepts each of its values', () => {
    expect(read({ source: '/srv/volumes/data' }).submounts).toBeUndefined()
    for (const submounts of ['refuse', 'hide', 'include']) {
      expect(read({ source: '/srv/volumes/data', submounts }).submounts).toBe(submounts)
    }
  })

  it('a request with both readOnly and mount option rw is refused', () => {
    expect(
      faultsOf({ source: '/srv/volumes/data', 'kubernetes.io/readwrite': 'ro', mountOptions: 'noatime,rw' }),
    ).toEqual(['option "mountOptions" has rw but the volume is readOnly: leave one of them out'])
  })

  it.each([['zfs'], ['BIND'], ['afs'], ['__proto__'], [' ']])('an fsType that no kind has is refused: %j', (fsType) => {
    expect(faultsOf({ source: '/srv/volumes/data', 'kubernetes.io/fsType': fsType })).toEqual([
      `fsType is ${JSON.stringify(fsType)}: this version mounts ${volumeKindLookup.names.join(', ')} (empty means bind)`,
    ])
  })

  it.each(['8c03f2a2-6d7e-4b5a-9f58-0c6a3c1f7b11', 'd41d8cd98f00b204e9800998ecf8427e'])(
    'a request for a mount directory of pod %s is refused if its options name another pod',
    (uid) => {
      const directory = `/var/lib/kubelet/pods/${uid}/volumes/modekeep~fs/v`
      const readAs = (more: object) =>
        parseFlexVolumeRequest(
          directory,
          JSON.stringify({ source: '/srv/volumes/data', ...more }),
          CONFIG,
          volumeKindLookup,
        )
      expect(readAs({ 'kubernetes.io/pod.uid': uid })).toMatchObject({ directory })
      for (const more of [{}, { 'kubernetes.io/pod.uid': '00000000-6d7e-4b5a-9f58-0c6a3c1f7b11' }]) {
        expect(() => readAs(more)).toThrow(`but the mount directory is that of pod ${uid}`)
      }
    },
  )

  it('a request without a source is refused, and the message names the option', () => {
    expect(faultsOf({})).toEqual(['option "source" is missing: name the directory of the node to mount'])
  })

  it('an option with an unreadable value is reported once, and its default causes no further fault', () => {
    expect(faultsOf({ source: 5 })).toEqual(['option "source" is 5: write it as a JSON string'])
  })

  it('one refusal names unknown keys, invalid values and faults of the kind of volume', () => {
    expect(
      faultsOf({
        source: 'rel',
        ownership: 'wlak',
        groupAccess: 'grant',
        mountOptions: 'nonsense',
        colour: 'red',
        'kubernetes.io/mounterArgs.FsGroup': 'x',
      }),
    ).toEqual([
      expect.stringMatching(/^unknown \["colour"\]/),
      expect.stringMatching(/^option "ownership" is "wlak"/),
      expect.stringMatching(/FsGroup" is "x"/),
      expect.stringMatching(/^option "source" is "rel"/),
      expect.stringMatching(/^option "mountOptions" has .*nonsense/),
    ])
  })

  it('a missing option is not reported if an unknown key may be a misspelling of that option', () => {
    expect(faultsOf({ sorce: '/srv/volumes/data', mountOptions: 'nonsense' })).toEqual([
      expect.stringMatching(/^unknown \["sorce"\]/),
      expect.stringMatching(/nonsense/),
    ])
  })

  it('the refusal of a request never shows a secret, whichever other fault the request has', () => {
    const secret = 'aHVudGVyMg'
    const twice = `"kubernetes.io/secret/a":"${secret}","kubernetes.io/secret/a":"${secret}"`
    const others = `"x":"${secret}","ownership":"x"`
    const flat = faultsOf(`{${twice},"kubernetes.io/secret/b":7,${others}}`)
    const nested = faultsOf(`{${twice},"kubernetes.io/secret/b":["${secret}"],${others}}`)
    const nestedDeeper = faultsOf(`{${twice},"kubernetes.io/secret/b":{"${secret}":"","${secret}":""},${others}}`)
    expect(flat).toHaveLength(5)
    expect(nested).toEqual(flat.slice(1))
    expect(nestedDeeper).toEqual(flat.slice(1))
    expect([...flat, ...nested, ...nestedDeeper].join()).not.toContain(secret)
  })
})
