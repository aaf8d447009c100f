import fc, { type Arbitrary } from 'fast-check'
import { place } from './damage.ts'

/** Text of any kind: ASCII, letters of the world, control characters, halves of characters. */
export const anyText: Arbitrary<string> = fc.oneof(
  fc.string(),
  fc.string({ unit: 'grapheme' }),
  fc.string({ unit: 'binary' }),
  fc.string({
    unit: fc.constantFrom('\0', '\n', '\r', '\t', '\u2028', '\ufffd', '\ufeff', '"', '\\', '/', '.', ',', '='),
  }),
)

/** Names that break programs whose objects have a prototype. */
export const prototypeNames = fc.constantFrom('__proto__', 'constructor', 'toString', 'hasOwnProperty', 'valueOf', '')

type Edit = readonly [place: number, removed: number, put: string]

const edits: Arbitrary<Edit[]> = fc.array(
  fc.tuple(
    place,
    fc.integer({ min: 0, max: 6 }),
    fc.oneof(fc.constantFrom('', '"', '{', '}', ':', ',', '\\', ' ', '\n', '\0', '-', '0'), anyText),
  ),
  { minLength: 1, maxLength: 4 },
)

/** A valid text with edits in some places. */
export function damaged(texts: Arbitrary<string>): Arbitrary<string> {
  return fc.tuple(texts, edits).map(([text, list]) => list.reduce(edited, text))
}

function edited(text: string, [place, removed, put]: Edit): string {
  const at = Math.floor(place * text.length)
  return text.slice(0, at) + put + text.slice(at + removed)
}
