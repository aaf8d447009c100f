import { isDeepStrictEqual } from 'node:util'

/** @throws {Error} that says what was seen, if it is not what was wanted */
export function expect(what: string, seen: unknown, wanted: unknown): void {
  if (wanted instanceof RegExp ? wanted.test(String(seen)) : isDeepStrictEqual(seen, wanted)) return
  throw new Error(`${what}: ${text(seen)}, not ${text(wanted)}`)
}

const text = (value: unknown) => (value instanceof RegExp ? String(value) : JSON.stringify(value))
