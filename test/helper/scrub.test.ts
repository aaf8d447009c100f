import { describe, expect, it } from 'vitest'
import { listSecretForms, MaskedOutputEnds } from '../../src/kernel/mask-secrets.ts'

/** Every way to cut a text in three pieces. */
function scrubbedInPieces(bytes: Buffer, secrets: readonly Uint8Array[], shown = 4096): Set<string> {
  const results = new Set<string>()
  for (let one = 0; one <= bytes.length; one++) {
    for (let two = one; two <= bytes.length; two++) {
      const ends = new MaskedOutputEnds(secrets, shown)
      for (const part of [bytes.subarray(0, one), bytes.subarray(one, two), bytes.subarray(two)]) ends.add(part)
      results.add(ends.text)
    }
  }
  return results
}

function scrubbed(text: string | Buffer, ...secrets: (string | Buffer)[]): string {
  const ends = new MaskedOutputEnds(
    secrets.map((secret) => Buffer.from(secret)),
    4096,
  )
  ends.add(Buffer.from(text))
  return ends.text
}

describe("secrets in a helper's output are masked", () => {
  const SECRET = 'p,a"s\\s w%rd!'
  it.each([
    ['in plain text', SECRET],
    ['in base64, as kubelet sent them', Buffer.from(SECRET).toString('base64')],
    ['in base64 without padding', Buffer.from(SECRET).toString('base64').replace(/=+$/, '')],
    ['in a URL', encodeURIComponent(SECRET)],
    ['in a URL, with every special character escaped', 'p%2Ca%22s%5Cs%20w%25rd%21'],
    ['in a URL, with escapes in lower case', 'p%2ca%22s%5cs%20w%25rd%21'],
    ['in JSON', JSON.stringify(SECRET).slice(1, -1)],
    ['with doubled commas', SECRET.replace(',', ',,')],
  ])('%s', (_how, form) => {
    expect(scrubbed(`before ${form} after`, SECRET)).toBe('before *** after')
  })

  it('if the percent-escapes of a URL are in another case', () => {
    expect(scrubbed('//server/P%2cAss', 'P,Ass')).toBe('//server/***')
  })

  it('line by line, with the line ends of any system', () => {
    const key = '-----BEGIN KEY-----\r\nMIIEpAIB\nabc\nxyzw\n-----END KEY-----\n'
    expect(scrubbed('bad line: MIIEpAIB; bad line: xyzw; abc', key)).toBe('bad line: ***; bad line: ***; abc')
  })

  it('if the secrets are binary data', () => {
    const secret = Buffer.from([0xff, 0x00, 0x80, 0x0a, 0x01])
    expect(scrubbed(Buffer.concat([Buffer.from('a'), secret, Buffer.from('b')]), secret)).toBe('a***b')
  })

  it('if the output arrives in pieces of any size', () => {
    const text = Buffer.from('x hunter2 aHVudGVyMg== y hunter2hunter2 z')
    expect(scrubbedInPieces(text, [Buffer.from('hunter2')])).toEqual(new Set(['x *** *** y *** z']))
  })

  it('if a secret repeats itself, and the output arrives in pieces of any size', () => {
    expect(scrubbedInPieces(Buffer.from('x ababab y ababa z'), [Buffer.from('abab')])).toEqual(
      new Set(['x *** y ***a z']),
    )
  })

  it('at both ends of the quoted parts of the output', () => {
    const text = `${'a'.repeat(20)}hunter2${'b'.repeat(300)}hunter2${'c'.repeat(20)}`
    const whole = text.replaceAll('hunter2', '***')
    let cut = 0
    for (let shown = 1; shown < 60; shown++) {
      const ends = new MaskedOutputEnds([Buffer.from('hunter2')], shown)
      for (const byte of Buffer.from(text)) ends.add(Buffer.of(byte))
      const [head = '', tail] = ends.text.split(' … ')
      if (tail === undefined) {
        expect(head).toBe(whole)
        continue
      }
      cut++
      expect([whole.startsWith(head), whole.endsWith(tail)]).toEqual([true, true])
      expect(Math.min(head.length, tail.length)).toBeGreaterThanOrEqual(shown - 'hunter2'.length)
    }
    expect(cut).toBeGreaterThan(20)
  })

  it('if a secret contains another one', () => {
    expect(scrubbed('secret-long secret', 'secret', 'secret-long')).toBe('*** ***')
  })

  it('if a helper printed only the beginning of a secret', () => {
    expect(scrubbed('it was hunt', 'hunter2')).toBe('it was ***')
    expect(scrubbed('it was hun', 'hunter2')).toBe('it was hun')
  })

  it('except an empty secret', () => {
    expect(listSecretForms([new Uint8Array()])).toEqual([])
    expect(scrubbed('text', '')).toBe('text')
  })
})
