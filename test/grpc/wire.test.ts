import { describe, expect, it } from 'vitest'
import * as messages from '../../src/fuse-device/messages.ts'
import { decode, encode, type Fields, type Message } from '../../src/grpc/wire.ts'
import { bytesOf, messageNames, messageType, plain } from '../fuse-device/proto.ts'

const TABLES = Object.entries(messages as unknown as Record<string, Fields>)
const TEXTS = ['', 'fuse-0', 'Ω\u{1f600}', 'x'.repeat(127), 'y'.repeat(128), 'z'.repeat(20_000)]
const NUMBERS = [0, 1, -1, 127, 128, 2 ** 31 - 1, -(2 ** 31)]

let seed = 1
/** A number below `count`; the same ones in each run. */
function draw(count: number): number {
  seed = (seed * 48_271) % 2_147_483_647
  return seed % count
}

function drawn(fields: Fields): Record<string, unknown> {
  const one = (kind: Fields[string]['kind']) => {
    if (kind === 'string') return TEXTS[draw(TEXTS.length)]
    if (kind === 'int32') return NUMBERS[draw(NUMBERS.length)]
    return kind === 'bool' ? draw(2) === 1 : drawn(kind)
  }
  const entries = Object.entries(fields).map(([name, { kind, repeated }]) => [
    name,
    repeated ? Array.from({ length: draw(4) }, () => one(kind)) : one(kind),
  ])
  return Object.fromEntries(entries)
}

describe("the plugin's protobuf", () => {
  it.each(TABLES)('has %s as the published proto has it', (name, fields) => {
    const published = messageType(name)
    for (const [field, { number, kind, repeated = false }] of Object.entries(fields)) {
      const type = typeof kind === 'string' ? kind : TABLES.find(([, table]) => table === kind)?.[0]
      expect({ field, number, type, repeated }).toEqual({
        field,
        number: published.fields[field]?.id,
        type: published.fields[field]?.type,
        repeated: published.fields[field]?.repeated,
      })
    }
  })

  it('leaves out no message but those it never sends or reads', () => {
    const unused = ['TopologyInfo', 'NUMANode', 'Mount']
    expect(TABLES.map(([name]) => name).toSorted()).toEqual(
      messageNames()
        .filter((n) => !unused.includes(n))
        .toSorted(),
    )
  })

  it.each(TABLES)(
    'writes %s so that another implementation reads it, and reads what that one writes',
    (name, fields) => {
      for (let round = 0; round < 100; round++) {
        const value = drawn(fields)
        expect(plain(name, encode(fields, value as Message<Fields>))).toMatchObject(value)
        expect(decode(fields, bytesOf(name, value))).toEqual(value)
      }
    },
  )

  it('skips fields that it does not know', () => {
    const device = { ID: 'fuse-0', health: 'Healthy', topology: { nodes: [{ ID: 1 }] } }
    expect(decode(messages.Device, bytesOf('Device', device))).toEqual({ ID: 'fuse-0', health: 'Healthy' })
    const fixed = Buffer.from([0x79, 1, 2, 3, 4, 5, 6, 7, 8, 0x7d, 1, 2, 3, 4, 0x70, 0x81, 1])
    expect(decode(messages.Device, Buffer.concat([fixed, bytesOf('Device', device)])).ID).toBe('fuse-0')
  })

  it.each([
    ['cut off in a text', [0x0a, 5, 0x61]],
    ['cut off in a number', [0x0a, 0x80]],
    ['cut off behind a tag', [0x0a]],
    ['a number without an end', Array(12).fill(0x80)],
    ['a group', [0x0b]],
    ['a number where a text belongs', [0x08, 1]],
    ['a length that is a negative number', [0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]],
  ])('refuses %s', (_what, bytes) => {
    expect(() => decode(messages.Device, Buffer.from(bytes))).toThrow('protobuf message')
  })
})
