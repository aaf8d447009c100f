import protobuf from 'protobufjs'
import { describe, expect, it } from 'vitest'
import {
  CSI_MESSAGES,
  codec,
  PLUGIN_REGISTRATION_MESSAGES,
  registrationProtobuf,
} from '../../../src/frontends/csi/messages.ts'
import type { ProtobufMessages } from '../../../src/rpc/protobuf.ts'
import { PROTO, REGISTRATION_PROTO } from './proto.ts'

/** A field's name as a proto has it. */
const published = (name: string) => name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

const PACKAGES: [string, ProtobufMessages, string][] = [
  ['csi.v1', CSI_MESSAGES, PROTO],
  ['pluginregistration', PLUGIN_REGISTRATION_MESSAGES, REGISTRATION_PROTO],
]

describe.each(PACKAGES)('the messages of %s', (space, tables, proto) => {
  const { root } = protobuf.parse(proto, { keepCase: true })
  const typeOf = (name: string) => root.lookupType(`${space}.${name}`)

  it.each(Object.keys(tables))('match the published definition of %s', (name) => {
    for (const [field, [number, type, many]] of Object.entries(tables[name] ?? {})) {
      const other = typeOf(name).fields[published(field)]?.resolve()
      const isEnumeration = other?.resolvedType instanceof protobuf.Enum
      expect({ field, number, type, many }).toEqual({
        field,
        number: other?.id,
        // An enumeration is its number.
        type: isEnumeration ? 'int32' : other?.type.split('.').at(-1),
        many: other?.map ? 'map' : other?.repeated ? 'repeated' : undefined,
      })
    }
  })
})

describe('a message of CSI', () => {
  const { root } = protobuf.parse(PROTO, { keepCase: true })
  const Request = root.lookupType('csi.v1.NodePublishVolumeRequest')

  it('is decoded from the bytes of another protobuf implementation, with maps, nested messages and enumerations', () => {
    const sent = {
      volume_id: 'one',
      target_path: '/t',
      volume_capability: {
        mount: { fs_type: 'ext4', mount_flags: ['noatime', 'ro'], volume_mount_group: '2000' },
        access_mode: { mode: 5 },
      },
      readonly: true,
      secrets: { password: 'p\u2028"\n', '': 'empty' },
      volume_context: { source: '/srv/a', ['__proto__']: 'x', constructor: 'y' },
      publish_context: { ignored: 'yes' },
    }
    expect(codec('NodePublishVolumeRequest').decode(Request.encode(Request.create(sent)).finish())).toMatchObject({
      volumeId: 'one',
      targetPath: '/t',
      volumeCapability: {
        mount: { fsType: 'ext4', mountFlags: ['noatime', 'ro'], volumeMountGroup: '2000' },
        accessMode: { mode: 5 },
      },
      readonly: true,
      secrets: { password: 'p\u2028"\n', '': 'empty' },
      volumeContext: { source: '/srv/a', constructor: 'y' },
    })
  })

  it('has the defaults of proto3 for missing fields: no message, empty maps', () => {
    const read = codec('NodePublishVolumeRequest').decode(Buffer.alloc(0))
    expect(read.volumeCapability).toBeUndefined()
    expect(Object.entries(read.secrets)).toEqual([])
    expect(read.volumeId).toBe('')
  })

  it('is encoded so that another implementation decodes it, with 64-bit numbers and lists of messages', () => {
    const Response = root.lookupType('csi.v1.NodeGetVolumeStatsResponse')
    const bytes = codec('NodeGetVolumeStatsResponse').encode({
      usage: [{ available: 2n ** 53n + 1n, total: 2n ** 62n, used: 0n, unit: 1 }],
      volumeCondition: undefined,
    })
    expect(Response.toObject(Response.decode(bytes), { longs: String, defaults: true })).toMatchObject({
      usage: [{ available: '9007199254740993', total: '4611686018427387904', used: '0', unit: 1 }],
    })
  })

  it("for kubelet's plugin registration belongs to another protobuf package", () => {
    const { root } = protobuf.parse(REGISTRATION_PROTO, { keepCase: true })
    const Info = root.lookupType('pluginregistration.PluginInfo')
    const info = { type: 'CSIPlugin', name: 'n', endpoint: '/e', supportedVersions: ['1.0.0'] }
    expect(Info.toObject(Info.decode(registrationProtobuf.codec('PluginInfo').encode(info)))).toEqual({
      type: 'CSIPlugin',
      name: 'n',
      endpoint: '/e',
      supported_versions: ['1.0.0'],
    })
  })
})
