/** A field of a protobuf message. What the plugin needs of proto3: no maps, no packed numbers, no oneof. */
export interface Field {
  readonly number: number
  readonly kind: 'string' | 'bool' | 'int32' | Fields
  readonly repeated?: true
}

/** A message: its fields by name. */
export interface Fields {
  readonly [name: string]: Field
}

type One<K extends Field['kind']> = K extends 'string'
  ? string
  : K extends 'bool'
    ? boolean
    : K extends 'int32'
      ? number
      : K extends Fields
        ? Message<K>
        : never

/** The value of a message: every field is there, as proto3 has it. */
export type Message<F extends Fields> = {
  [N in keyof F]: F[N]['repeated'] extends true ? One<F[N]['kind']>[] : One<F[N]['kind']>
}

const VARINT = 0
const FIXED64 = 1
const BYTES = 2
const FIXED32 = 5

/** Proto3: fields that have their default value are left out. */
export function encode<F extends Fields>(fields: F, value: Message<F>): Buffer {
  const parts: Buffer[] = []
  for (const [name, { number, kind, repeated }] of Object.entries(fields)) {
    const values = repeated ? (value[name] as unknown[]) : [value[name]].filter((one) => one !== '' && one !== 0 && one)
    for (const one of values) parts.push(encodeField(number, kind, one))
  }
  return Buffer.concat(parts)
}

function encodeField(number: number, kind: Field['kind'], value: unknown): Buffer {
  if (kind === 'bool' || kind === 'int32') return Buffer.concat([varint((number << 3) | VARINT), varint(Number(value))])
  const bytes = kind === 'string' ? Buffer.from(value as string) : encode(kind, value as Message<Fields>)
  return Buffer.concat([varint((number << 3) | BYTES), varint(bytes.length), bytes])
}

function varint(value: number): Buffer {
  const bytes: number[] = []
  // A negative int32 is written as the 64-bit number it is extended to.
  let rest = BigInt.asUintN(64, BigInt(value))
  for (; rest > 0x7fn; rest >>= 7n) bytes.push(Number(rest & 0x7fn) | 0x80)
  return Buffer.from([...bytes, Number(rest)])
}

/** Fields that are not in the table are skipped. @throws Error for bytes that are not a message */
export function decode<F extends Fields>(fields: F, bytes: Buffer): Message<F> {
  const value = empty(fields)
  const byNumber = new Map(Object.entries(fields).map(([name, field]) => [field.number, { name, ...field }]))
  const reader = new Reader(bytes)
  while (!reader.atEnd) {
    const tag = Number(reader.varint())
    const content = reader.content(tag & 7)
    const field = byNumber.get(tag >>> 3)
    if (field === undefined) continue
    const one = decodeField(field.kind, content)
    if (field.repeated) (value[field.name] as unknown[]).push(one)
    else value[field.name] = one
  }
  return value as Message<F>
}

function empty(fields: Fields): Record<string, unknown> {
  const zero = ({ kind, repeated }: Field) =>
    repeated ? [] : kind === 'string' ? '' : kind === 'bool' ? false : kind === 'int32' ? 0 : empty(kind)
  return Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, zero(field)]))
}

function decodeField(kind: Field['kind'], content: bigint | Buffer): unknown {
  if (kind === 'bool' || kind === 'int32') {
    if (typeof content !== 'bigint') throw new Error('a number of a protobuf message is not one')
    return kind === 'bool' ? content !== 0n : Number(BigInt.asIntN(32, content))
  }
  if (typeof content === 'bigint') throw new Error('a text or message of a protobuf message is a number')
  return kind === 'string' ? content.toString() : decode(kind, content)
}

class Reader {
  readonly #bytes: Buffer
  #at = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  get atEnd(): boolean {
    return this.#at === this.#bytes.length
  }

  varint(): bigint {
    let value = 0n
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = this.#take(1).readUInt8()
      value |= BigInt(byte & 0x7f) << shift
      if (byte < 0x80) return BigInt.asUintN(64, value)
    }
    throw new Error('a number of a protobuf message has no end')
  }

  content(wireType: number): bigint | Buffer {
    if (wireType === VARINT) return this.varint()
    if (wireType === BYTES) return this.#take(Number(this.varint()))
    if (wireType === FIXED64) return this.#take(8)
    if (wireType === FIXED32) return this.#take(4)
    throw new Error(`a field of a protobuf message is of wire type ${wireType}`)
  }

  #take(size: number): Buffer {
    const end = this.#at + size
    if (end > this.#bytes.length) throw new Error('a protobuf message is cut off')
    const part = this.#bytes.subarray(this.#at, end)
    this.#at = end
    return part
  }
}
