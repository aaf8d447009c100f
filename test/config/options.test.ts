import { describe, expect, it } from 'vitest'
import { AUTHOR_OPTION_KEYS, checkVolumeOptions } from '../../src/config/request.ts'
import { rendered } from '../helpers/rendered.ts'

const KEYS =
  'source, subPath, mountOptions, ownership, idmapFrom, groupAccess, fsGroupChangePolicy, restoreOnUnmount, setGid, submounts'

describe('the options', () => {
  it('the author of a pod can write ten options', () => {
    expect(AUTHOR_OPTION_KEYS.join(', ')).toBe(KEYS)
  })

  it('the options of a complete call are accepted unchanged', () => {
    const options = {
      source: '/srv/a',
      subPath: 'a/b',
      mountOptions: 'noatime',
      ownership: 'auto',
      idmapFrom: '0',
      groupAccess: 'keep',
      fsGroupChangePolicy: 'Always',
      restoreOnUnmount: 'true',
      setGid: 'root',
      submounts: 'hide',
      'kubernetes.io/fsType': '',
      'kubernetes.io/readwrite': 'rw',
      'kubernetes.io/fsGroup': '2000',
      'kubernetes.io/mounterArgs.FsGroup': '2000',
      'kubernetes.io/pvOrVolumeName': 'v',
      'kubernetes.io/pod.name': 'p',
      'kubernetes.io/pod.namespace': 'n',
      'kubernetes.io/pod.uid': 'u',
      'kubernetes.io/serviceAccount.name': '',
    }
    expect(checkVolumeOptions(Object.entries(options))).toMatchObject({ options, faults: [] })
  })

  it('unknown options are named in one fault, without their values', () => {
    const given = [
      ['Source', 'value-1'],
      ['fsType', 'value-2'],
      ['sources', 'value-3'],
    ] as [string, unknown][]
    expect(rendered(checkVolumeOptions(given).faults)).toEqual([
      `unknown ["Source","fsType","sources"]: the options are ${KEYS}`,
    ])
  })

  it.each([['__proto__'], ['constructor'], ['toString'], ['']])(
    '%j as an option is refused like any other unknown key',
    (key) => {
      expect(rendered(checkVolumeOptions([[key, 'x']]))).toMatchObject({
        options: {},
        faults: [`unknown ${JSON.stringify([key])}: the options are ${KEYS}`],
      })
      expect({}).not.toHaveProperty('x')
    },
  )

  it('unknown keys of kubelet are ignored if they are strings', () => {
    expect(
      rendered(
        checkVolumeOptions([
          ['kubernetes.io/new', 'x'],
          ['kubernetes.io/newer', 7],
          ['kubernetes.io/', null],
        ]),
      ),
    ).toMatchObject({
      options: {},
      faults: ['option "kubernetes.io/newer" must be a JSON string', 'option "kubernetes.io/" must be a JSON string'],
    })
  })

  it.each([
    ['source', 5, 'option "source" is 5: write it as a JSON string'],
    ['source', null, 'option "source" is null: write it as a JSON string'],
    ['source', ['/a'], 'option "source" is ["/a"]: write it as a JSON string'],
    ['source', { a: 'b' }, 'option "source" is {"a":"b"}: write it as a JSON string'],
    ['mountOptions', true, 'option "mountOptions" is true: write it as a JSON string'],
    ['ownership', 'Walk', 'option "ownership" is "Walk": use one of none, walk, idmap, auto'],
    ['ownership', '', 'option "ownership" is "": use one of none, walk, idmap, auto'],
    ['ownership', 'chown', 'option "ownership" is "chown": use one of none, walk, idmap, auto'],
    ['groupAccess', 'rw', 'option "groupAccess" is "rw": use one of keep, grant'],
    ['fsGroupChangePolicy', 'always', 'option "fsGroupChangePolicy" is "always": use one of OnRootMismatch, Always'],
    ['restoreOnUnmount', true, 'option "restoreOnUnmount" is true: use one of true, false'],
    ['setGid', 'true', 'option "setGid" is "true": use one of root'],
    ['restoreOnUnmount', 'yes', 'option "restoreOnUnmount" is "yes": use one of true, false'],
    ['kubernetes.io/readwrite', 'RO', 'option "kubernetes.io/readwrite" is "RO": use one of ro, rw'],
    ['kubernetes.io/fsType', 1, 'option "kubernetes.io/fsType" is 1: write it as a JSON string'],
    ['kubernetes.io/fsGroup', 2000, 'option "kubernetes.io/fsGroup" is 2000: write it as a JSON string'],
    [
      'kubernetes.io/mounterArgs.FsGroup',
      2000,
      'option "kubernetes.io/mounterArgs.FsGroup" is 2000: write it as a JSON string',
    ],
    ['kubernetes.io/pod.name', {}, 'option "kubernetes.io/pod.name" is {}: write it as a JSON string'],
  ])('the message about option %s with value %j names key, value and remedy', (key, value, fault) => {
    expect(rendered(checkVolumeOptions([[key, value]]))).toMatchObject({ options: {}, faults: [fault] })
  })
})

describe("a secret's value", () => {
  it.each([['aHVudGVyMg=='], [''], ['not base64 !']])('that is a string is accepted and not stored: %j', (value) => {
    expect(checkVolumeOptions([['kubernetes.io/secret/password', value]])).toMatchObject({ options: {}, faults: [] })
  })

  it.each([[12345678], [['hunter2-12345678']], [{ a: 'hunter2-12345678' }], [null]])(
    'that is no string is refused without being shown: %j',
    (value) => {
      expect(rendered(checkVolumeOptions([['kubernetes.io/secret/password', value]]).faults)).toEqual([
        'option "kubernetes.io/secret/password" must be a JSON string',
      ])
    },
  )
})
