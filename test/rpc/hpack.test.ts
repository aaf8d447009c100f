import { describe, expect, it } from 'vitest'
import { replaceAuthoritySlashes } from '../../src/rpc/authority.ts'

/** Codes of RFC 7541, appendix B. */
const CODES: Readonly<Record<string, string>> = {
  '0': '00000',
  '/': '011000',
  '-': '010110',
  '.': '010111',
  '%': '010101',
  '3': '011001',
  a: '00011',
  c: '00100',
  k: '1110101',
  o: '00111',
  s: '01000',
  ':': '1011100',
  '!': '1111111000',
  '\\': '1111111111111110000',
}

function huffman(text: string): Buffer {
  const bits = [...text].map((letter) => CODES[letter] ?? expect.unreachable(letter)).join('')
  // Filled up with the beginning of EOS, which is ones.
  const bytes = bits.padEnd(Math.ceil(bits.length / 8) * 8, '1').match(/.{8}/g) ?? []
  return Buffer.from(bytes.map((byte) => Number.parseInt(byte, 2)))
}

/** A whole number after the first bits of its byte. */
function integer(first: number, bits: number, value: number): number[] {
  const most = 2 ** bits - 1
  if (value < most) return [first | value]
  const bytes = [first | most]
  let rest = value - most
  for (; rest >= 0x80; rest >>= 7) bytes.push((rest & 0x7f) | 0x80)
  return [...bytes, rest]
}

const plain = (text: string) => [...integer(0, 7, text.length), ...Buffer.from(text)]
const coded = (text: string) => [...integer(0x80, 7, huffman(text).length), ...huffman(text)]

/** The forms of a literal header with a name of the table. */
const LITERALS: [string, number, number][] = [
  ['that the table stores', 0x40, 6],
  ['that the table does not store', 0x00, 4],
  ['that must never be stored', 0x10, 4],
]
const [AUTHORITY, PATH] = [1, 4]

function mended(...parts: number[][]): number[] {
  const block = Buffer.from(parts.flat())
  replaceAuthoritySlashes(block)
  return [...block]
}

describe.each(LITERALS)('a header %s', (_what, first, bits) => {
  const header = (name: number, value: number[]) => [...integer(first, bits, name), ...value]

  it('gets dashes for slashes if it is the authority, and no other byte changes', () => {
    const around = [[0x82], header(PATH, plain('/a/b')), [0x20 | 5]]
    const got = mended(...around, header(AUTHORITY, plain('/run/a-b.sock:/')), ...around)
    expect(got).toEqual([...around, header(AUTHORITY, plain('-run-a-b.sock:-')), ...around].flat())
  })

  it.each(['/', 'a/', '//////', 'aaa/k/:/!/\\/0', '\\!k:%3-.', 'so%3a//a.sock'])(
    'gets dashes for slashes in Huffman code too: %s',
    (text) => {
      const got = mended(header(AUTHORITY, coded(text)), header(PATH, coded(text)))
      const dashed = text.replaceAll('/', '-')
      expect(got).toEqual([...header(AUTHORITY, coded(dashed)), ...header(PATH, coded(text))])
    },
  )

  it('stays unchanged if its name is literal, even if the name is long', () => {
    const own = [first, ...plain('x/'.repeat(200)), ...plain('a/b')]
    const got = mended(own, header(AUTHORITY, plain('a/b')))
    expect(got).toEqual([...own, ...header(AUTHORITY, plain('a-b'))])
  })

  it('counts as :authority only by its index in the static table', () => {
    const other = header(2 ** bits - 1 + AUTHORITY, plain('/'))
    expect(mended(other)).toEqual(other)
  })
})

it('the example header blocks of RFC 7541 stay unchanged', () => {
  const block = Buffer.from('828684418cf1e3c2e5f23a6ba0ab90f4ff', 'hex')
  const before = block.toString('hex')
  replaceAuthoritySlashes(block)
  expect(block.toString('hex')).toBe(before)
})

it('a header block that is truncated at any byte causes no error', () => {
  const whole = [0x41, ...plain('/'.repeat(140)), 0x41, ...coded('a/a'), 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff]
  for (let size = 0; size <= whole.length; size++) {
    expect(mended(whole.slice(0, size))).toHaveLength(size)
  }
})
