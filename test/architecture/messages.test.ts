import { describe, expect, it } from 'vitest'
import { sourcesIn } from './sources.ts'

/** Names of texts that are written for people. */
const TEXT = String.raw`\w*(?:message|reason|why|remedy|warning|sentence|details?|cause|fault|refusal|failure|doubt)s?`
const READERS =
  'startsWith|endsWith|includes|split|replace|replaceAll|match|matchAll|search|slice|substring|indexOf|lastIndexOf'

/** Code that decides by a sentence. A fault has a code and fields, an error an errno name, a finding a state. */
const PATTERNS = [
  // A method that searches in the text or cuts it.
  new RegExp(String.raw`\b${TEXT}\)?[?!]?\.(?:${READERS})\(`, 'i'),
  new RegExp(String.raw`\bformatError\([^()]*\)\.(?:${READERS})\(`),
  // A regular expression that is applied to the text.
  new RegExp(String.raw`/[a-z]*\.(?:test|exec)\((?:\w+\.)*${TEXT}\)`, 'i'),
  // A comparison with a sentence, or with the text of another object. Words of a union have no space.
  new RegExp(String.raw`\b${TEXT} [!=]== (?:'[^']* |"[^"]* |[A-Z]\w*\.)`),
]

/** Lines that read a text of another author, or a recorded word of a union. */
const EXCEPTIONS: Readonly<Record<string, string>> = {
  'src/errors/fault.ts: const translated = sentence.replaceAll(': 'renders the placeholders of a protocol',
  'src/rpc/client.ts: const details = error.details.replaceAll(': 'gRPC has the path of a socket only in its text',
  "src/ownership/walk/change.ts: return reason === 'changed during the walk'": 'a SkipReason, which records name',
}

const isCode = (line: string) => !/^\s*(?:\/\/|\*|\/\*)/.test(line)
const readsText = (line: string) => isCode(line) && PATTERNS.some((pattern) => pattern.test(line))

describe('code of src and driver', () => {
  it.each([
    "const [text, remedy] = error.message.split(': ')",
    'mounts.filter(({ given }) => given.why.includes(SET_GID_REMEDY))',
    "if (message.startsWith('ENOSPC')) return",
    'error.message = error.message.replaceAll(link, () => path)',
    'findings.filter(({ reason }) => reason === UNRECORDED_MOUNT_FINDING.reason)',
    "if (why !== 'asked for') lines.push(why)",
    'return /EPERM|EACCES/.test(detail)',
    "formatError(error).includes('no such file')",
  ])('that parses the text of a message is found by the search: %s', (line) => {
    expect(readsText(line)).toBe(true)
  })

  it.each(["if (reason !== '') lines.push(reason)", "return why === 'busy'", "expect(name.startsWith('a'))"])(
    'that does not parse the text of a message is not found by the search: %s',
    (line) => {
      expect(readsText(line)).toBe(false)
    },
  )

  it('does not parse the text of a message', () => {
    const found = [...sourcesIn('src', true), ...sourcesIn('driver', true)].flatMap(({ path, text }) =>
      text.split('\n').flatMap((line, at) => (readsText(line) ? [{ place: `${path}:${at + 1}`, path, line }] : [])),
    )
    const isExcepted = ({ path, line }: { path: string; line: string }) =>
      Object.keys(EXCEPTIONS).some((exception) => `${path}: ${line.trim()}`.startsWith(exception))
    expect(found.filter((one) => !isExcepted(one)).map(({ place, line }) => `${place} ${line.trim()}`)).toEqual([])
    expect(found.filter(isExcepted)).toHaveLength(Object.keys(EXCEPTIONS).length)
  })
})
