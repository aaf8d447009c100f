import fc, { type Arbitrary } from 'fast-check'
import { expect } from 'vitest'

/** A pod's secret: long enough that finding it anywhere is no accident. */
export interface Secret {
  key: string
  bytes: Buffer
}

export const secrets: Arbitrary<Secret[]> = fc.array(
  fc.record({
    key: fc.constantFrom('password', 'username', 'token', 'a b', '__proto__', ''),
    bytes: fc
      .oneof(
        fc.uint8Array({ minLength: 12, maxLength: 64 }).map((bytes) => Buffer.from(bytes)),
        fc.string({ minLength: 12, maxLength: 64, unit: 'grapheme' }).map((text) => Buffer.from(text)),
        fc.string({ minLength: 12, unit: fc.constantFrom('"', '\\', '%', '&', '=', ',', '/', '+') }).map(Buffer.from),
      )
      .map((bytes) => Buffer.concat([Buffer.from('s3cr3t-'), bytes])),
  }),
  { minLength: 1, maxLength: 3 },
)

/** As kubelet puts them among the options. */
export function entriesOf(list: readonly Secret[]): [string, string][] {
  return list.map(({ key, bytes }) => [`kubernetes.io/secret/${key}`, bytes.toString('base64')])
}

/** All the forms in which a secret would still be one. */
function formsOf(bytes: Buffer): string[] {
  const text = bytes.toString()
  const json = JSON.stringify(text).slice(1, -1)
  const url = isWellFormed(text) ? [encodeURIComponent(text), encodeURI(text)] : []
  return [
    text,
    json,
    JSON.stringify(json).slice(1, -1),
    bytes.toString('latin1'),
    bytes.toString('hex'),
    bytes.toString('base64'),
    bytes.toString('base64url'),
    ...url,
  ]
}

function isWellFormed(text: string): boolean {
  return !/\p{Surrogate}/u.test(text)
}

export function expectNoSecret(text: string, list: readonly Secret[]): void {
  for (const { key, bytes } of list) {
    for (const form of formsOf(bytes)) expect(text.includes(form), `secret ${key} in ${text}`).toBe(false)
  }
  expect(text.includes('s3cr3t-')).toBe(false)
}
