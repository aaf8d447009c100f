import protobuf from 'protobufjs'
import { describe, expect, it } from 'vitest'
import { codec, DEVICE_PLUGIN_MESSAGES } from '../../src/frontends/device-plugin/server.ts'
import { createProtobufPackage, type ProtobufMessages } from '../../src/rpc/protobuf.ts'
import { bytesOf, messageNames, messageType, plain } from '../frontends/device-plugin/proto.ts'

type Name = keyof typeof DEVICE_PLUGIN_MESSAGES

const TABLES: ProtobufMessages = DEVICE_PLUGIN_MESSAGES
const NAMES = Object.keys(DEVICE_PLUGIN_MESSAGES) as Name[]
const TEXTS = ['', 'fuse-0', 'Ω\u{1f600}', 'x'.repeat(127), 'y'.repeat(128), 'z'.repeat(20_000)]
const NUMBERS = [0, 1, -1, 127, 128, 2 ** 31 - 1, -(2 ** 31)]

let seed = 1
/** A number below `count`; the same ones in each run. */
function draw(count: number): number {
  seed = (seed * 48_271) % 2_147_483_647
  return seed % count
}

function drawn(message: string): Record<string, unknown> {
  const one = (type: string) => {
    if (type === 'string') return TEXTS[draw(TEXTS.length)]
    if (type === 'int32') return NUMBERS[draw(NUMBERS.length)]
    return type === 'bool' ? draw(2) === 1 : drawn(type)
  }
  const entries = Object.entries(TABLES[message] ?? {}).map(([name, [, type, repeated]]) => [
    name,
    repeated ? Array.from({ length: draw(4) }, () => one(type)) : one(type),
  ])
  return Object.fromEntries(entries)
}

/** A field's name as the published proto has it. */
function published(name: string): string {
  const fields = messageNames().flatMap((message) => Object.keys(messageType(message).fields))
  return fields.find((field) => protobuf.util.camelCase(field) === name) ?? name
}

/** A value under the names of the published proto. */
function renamed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(renamed)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [published(name), renamed(one)]))
}

describe("the device plugin's protobuf", () => {
  it.each(NAMES)('matches the published definition of %s', (name) => {
    const { fields } = messageType(name)
    for (const [field, [number, type, repeated]] of Object.entries(TABLES[name] ?? {})) {
      const other = fields[published(field)]
      expect({ field, number, type, repeated: repeated !== undefined }).toEqual({
        field,
        number: other?.id,
        type: other?.type,
        repeated: other?.repeated,
      })
    }
  })

  it('leaves out only messages that the plugin never sends or reads', () => {
    const unused = ['TopologyInfo', 'NUMANode', 'Mount']
    expect(NAMES.toSorted()).toEqual(
      messageNames()
        .filter((n) => !unused.includes(n))
        .toSorted(),
    )
  })

  it.each(NAMES)('encodes %s for protobufjs, and decodes the bytes that protobufjs encodes', (name) => {
    const { encode, decode } = codec(name)
    for (let round = 0; round < 100; round++) {
      const value = drawn(name)
      const other = renamed(value) as object
      expect(plain(name, encode(value as never))).toMatchObject(other)
      expect(decode(bytesOf(name, other))).toMatchObject(value)
    }
  })

  it("decodes missing fields as proto3's defaults", () => {
    const left = { availableDeviceIDs: [], mustIncludeDeviceIDs: [], allocationSize: 0 }
    expect(codec('ContainerPreferredAllocationRequest').decode(Buffer.alloc(0))).toMatchObject(left)
  })

  it('ignores unknown fields', () => {
    const { decode } = codec('Device')
    const device = { ID: 'fuse-0', health: 'Healthy', topology: { nodes: [{ ID: 1 }] } }
    expect(decode(bytesOf('Device', device))).toMatchObject({ ID: 'fuse-0', health: 'Healthy' })
    const fixed = Buffer.from([0x79, 1, 2, 3, 4, 5, 6, 7, 8, 0x7d, 1, 2, 3, 4, 0x70, 0x81, 1])
    expect(decode(Buffer.concat([fixed, bytesOf('Device', device)])).ID).toBe('fuse-0')
  })

  it.each([
    ['bytes that end in a text', [0x0a, 5, 0x61]],
    ['bytes that end in a number', [0x0a, 0x80]],
    ['bytes that end after a tag', [0x0a]],
    ['an endless number', Array(12).fill(0x80)],
    ['a group', [0x0b]],
    ['a number in place of a text', [0x08, 1]],
    ['a negative length', [0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]],
  ])('refuses %s', (_what, bytes) => {
    expect(() => codec('Device').decode(Buffer.from(bytes))).toThrow(Error)
  })

  it('rejects a message that is not in the table of messages', () => {
    expect(() => createProtobufPackage('test', {}).codec('Device' as never)).toThrow(
      'the protobuf package test has no message type Device',
    )
  })
})
