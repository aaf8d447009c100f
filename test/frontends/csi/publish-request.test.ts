import { describe, expect, it } from 'vitest'
import { DEFAULT_CONFIG } from '../../../src/config/defaults.ts'
import { createMountRequest } from '../../../src/config/request.ts'
import type { CsiMessage } from '../../../src/frontends/csi/messages.ts'
import { kubeletPassesFsGroup } from '../../../src/frontends/csi/node-service.ts'
import { parsePublishRequest } from '../../../src/frontends/csi/publish-request.ts'
import { parseStatsVolumePath, parseTargetPath } from '../../../src/frontends/csi/target-path.ts'
import { volumeKindLookup } from '../../../src/volume/index.ts'

const UID = 'f7aea1c3-1111-2222-3333-444455556666'
const TARGET = `/var/lib/kubelet/pods/${UID}/volumes/kubernetes.io~csi/v/mount`
const POD = {
  'csi.storage.k8s.io/pod.name': 'inl',
  'csi.storage.k8s.io/pod.namespace': 'shop',
  'csi.storage.k8s.io/pod.uid': UID,
  'csi.storage.k8s.io/serviceAccount.name': 'default',
  'csi.storage.k8s.io/ephemeral': 'true',
}

type Publish = CsiMessage<'NodePublishVolumeRequest'>
type Capability = CsiMessage<'VolumeCapability'>

const capability = (mount: Partial<CsiMessage<'MountVolume'>> = {}, mode = 1): Capability => ({
  block: undefined,
  mount: { fsType: '', mountFlags: [], volumeMountGroup: '', ...mount },
  accessMode: { mode },
})

const publish = (over: Partial<Publish> = {}): Publish => ({
  volumeId: 'csi-1',
  targetPath: TARGET,
  volumeCapability: capability(),
  readonly: false,
  secrets: {},
  volumeContext: { source: '/var/lib/modekeep/volumes/shop/a', ...POD },
  ...over,
})

/** What the engine makes of it. */
const asked = (request: Publish) => {
  const { directory, options, secrets } = parsePublishRequest(request)
  const given = { entries: Object.entries(options), secretKeys: Object.keys(secrets) }
  return createMountRequest(directory, given, DEFAULT_CONFIG, volumeKindLookup)
}
const attributes = (more: Record<string, string>) => publish({ volumeContext: { source: '/srv/a', ...more, ...POD } })

describe('a NodePublishVolume request', () => {
  it('of an inline volume has the options of the same FlexVolume', () => {
    const request = publish({ volumeCapability: capability({ fsType: 'bind', volumeMountGroup: '2000' }) })
    request.volumeContext.ownership = 'walk'
    expect(parsePublishRequest(request)).toMatchObject({
      volumeId: 'csi-1',
      directory: TARGET,
      lifecycle: 'inline',
      namespace: 'shop',
    })
    expect(asked(request)).toMatchObject({
      directory: TARGET,
      source: { type: 'local', path: '/var/lib/modekeep/volumes/shop/a' },
      fsType: 'bind',
      fsGroup: { groupId: 2000 },
      ownership: 'walk',
      readOnly: false,
      pod: 'shop/inl',
      namespace: 'shop',
    })
  })

  it('of a PersistentVolume has its flags, its secrets and its read-only option', () => {
    const persistent = { ...POD, 'csi.storage.k8s.io/ephemeral': 'false' }
    const provisioner = { 'storage.kubernetes.io/csiProvisionerIdentity': '1-2-x' }
    const request = publish({
      volumeCapability: capability({ mountFlags: ['noatime', 'nodev'] }, 5),
      volumeContext: { source: '/srv/a', mountOptions: 'noexec', ...provisioner, ...persistent },
      secrets: { password: 'p"\u2028ss', user: '' },
      readonly: true,
    })
    expect(parsePublishRequest(request).lifecycle).toBe('persistent')
    expect(() => asked(request)).toThrow('the Secret has "password, user", which bind does not take')
    expect(asked({ ...request, secrets: {} })).toMatchObject({
      mountOptions: ['noexec', 'noatime', 'nodev'],
      readOnly: true,
    })
    expect(Object.entries(parsePublishRequest(request).secrets)).toEqual([
      ['password', 'p"\u2028ss'],
      ['user', ''],
    ])
  })

  it.each([
    [1, false],
    [2, true],
    [3, true],
    [4, false],
    [5, false],
    [6, false],
    [7, false],
  ])('with access mode %i is read-only: %s', (mode, readOnly) => {
    expect(asked(publish({ volumeCapability: capability({}, mode) })).readOnly).toBe(readOnly)
  })

  it('results in equal options for any order of its attributes', () => {
    const one = publish({ secrets: { a: '1', b: '2' } })
    const reversed = (map: Record<string, string>) => Object.fromEntries(Object.entries(map).reverse())
    const other = { ...one, secrets: reversed(one.secrets), volumeContext: reversed(one.volumeContext) }
    expect(JSON.stringify(parsePublishRequest(other))).toBe(JSON.stringify(parsePublishRequest(one)))
  })

  it('is refused with all missing and invalid fields in one message', () => {
    const bare = publish({ volumeId: '', targetPath: '', volumeCapability: undefined, volumeContext: {} })
    for (const fault of [
      'volume_id is missing',
      'target_path is missing',
      'volume_capability is missing',
      'podInfoOnMount: true',
    ]) {
      expect(() => parsePublishRequest(bare)).toThrow(fault)
    }
  })

  it.each<[string, Partial<Publish>, string]>([
    ['a relative path', { targetPath: 'a/b' }, 'target_path: mount directory "a/b": an absolute path is needed'],
    ['a path with ".."', { targetPath: '/a/../b' }, 'target_path: mount directory "/a/../b": it must not contain ".."'],
    [
      'a block device',
      { volumeCapability: { ...capability(), mount: undefined, block: {} } },
      'volume_capability asks for a block device',
    ],
    [
      'no access type',
      { volumeCapability: { ...capability(), mount: undefined } },
      'volume_capability has no access type',
    ],
    [
      'no access mode',
      { volumeCapability: { ...capability(), accessMode: undefined } },
      'volume_capability has access_mode 0',
    ],
    ['an unknown access mode', { volumeCapability: capability({}, 8) }, 'has access_mode 8'],
    ['an invalid group', { volumeCapability: capability({ volumeMountGroup: '-1' }) }, 'volume_mount_group is "-1"'],
  ])('with %s is refused', (_what, over, message) => {
    expect(() => parsePublishRequest(publish(over))).toThrow(message)
  })

  it.each(['walk', 'idmap', 'auto'])(
    'of a kubelet that passes no fsGroup is refused with ownership %s',
    (ownership) => {
      expect(() => parsePublishRequest(attributes({ ownership }), false)).toThrow(
        'hands no fsGroup over to CSI drivers',
      )
      expect(() => parsePublishRequest(attributes({ ownership }), true)).not.toThrow()
    },
  )

  it('of a kubelet that passes no fsGroup is accepted without the option ownership, or if the request has a group', () => {
    expect(() => parsePublishRequest(attributes({}), false)).not.toThrow()
    expect(() => parsePublishRequest(attributes({ ownership: 'none' }), false)).not.toThrow()
    const given = { ...attributes({ ownership: 'walk' }), volumeCapability: capability({ volumeMountGroup: '2000' }) }
    expect(() => parsePublishRequest(given, false)).not.toThrow()
  })

  it.each([
    ['grpc-go/1.27.1', false],
    ['grpc-go/1.38.0', false],
    ['grpc-go/1.40.0', true],
    ['grpc-go/1.72.2', true],
    ['grpc-node-js/1.14.7', true],
    ['', true],
  ])("of the client %j counts as one with the pod's group, if the pod has a group: %s", (client, expected) => {
    expect(kubeletPassesFsGroup(client)).toBe(expected)
  })

  it.each(['kubernetes.io/pod.namespace', 'kubernetes.io/fsGroup', 'kubernetes.io/secret/x', 'sourc', 'constructor'])(
    'with the unknown attribute %s, or one that only kubelet writes for a FlexVolume, is refused',
    (key) => {
      expect(() => parsePublishRequest(attributes({ [key]: 'other' }))).toThrow(
        `volumeAttributes have unknown ["${key}"]: the attributes are source, subPath`,
      )
    },
  )

  it.each(['pod.name', 'pod.namespace', 'pod.uid', 'ephemeral'])(
    "without kubelet's attribute %s is refused, because the others may be forged",
    (name) => {
      const { [`csi.storage.k8s.io/${name}`]: _, ...volumeContext } = publish().volumeContext
      expect(() => parsePublishRequest(publish({ volumeContext }))).toThrow('podInfoOnMount: true')
    },
  )

  it.each(['yes', 'constructor', ''])('with the attribute ephemeral %j is refused', (value) => {
    const volumeContext = { ...publish().volumeContext, 'csi.storage.k8s.io/ephemeral': value }
    expect(() => parsePublishRequest(publish({ volumeContext }))).toThrow('podInfoOnMount: true')
  })

  it("is refused if the pod's uid differs from the one in the target path", () => {
    const volumeContext = { ...publish().volumeContext, 'csi.storage.k8s.io/pod.uid': 'forged' }
    expect(() => parsePublishRequest(publish({ volumeContext }))).toThrow(
      `volumeAttributes name pod "forged", but target_path is that of pod ${UID}`,
    )
  })

  it("ignores other attributes with kubelet's prefix, such as tokens", () => {
    const request = publish()
    request.volumeContext['csi.storage.k8s.io/serviceAccount.tokens'] = '{"secret":"token"}'
    expect(JSON.stringify(parsePublishRequest(request).options)).not.toContain('token')
  })

  it('contains no secret in its refusals', () => {
    const request = publish({ secrets: { password: 'hunter2' }, volumeId: '', volumeContext: { x: 'y' } })
    expect(() => parsePublishRequest(request)).toThrow(/^(?!.*hunter2).*volume_id/s)
  })
})

describe('a call for a published volume', () => {
  it('is refused without a volume id or a directory', () => {
    expect([parseTargetPath('v', '/a//b/'), parseStatsVolumePath('v', '/a//b/')]).toEqual(['/a/b', '/a/b'])
    expect(() => parseTargetPath('', '')).toThrow('volume_id is missing: name it; target_path is missing')
    expect(() => parseTargetPath('v', 'a')).toThrow('target_path: mount directory "a": an absolute path is needed')
    expect(() => parseStatsVolumePath('', '')).toThrow('volume_id is missing: name it; volume_path is missing')
  })

  it('is NOT_FOUND for stats of a path where nothing can be published', () => {
    for (const path of ['a/b', '/a/../b']) {
      expect(() => parseStatsVolumePath('v', path)).toThrow(expect.objectContaining({ code: 'NOT_FOUND' }))
    }
  })
})
