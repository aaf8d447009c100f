import { assertOptionsSize, fieldSizeFaults, secretsSizeFaults } from '../path/input-sizes.ts'
import { quoted, Refusal } from '../refusal/refusal.ts'

/**
 * Kubelet's options argument: one flat JSON object of strings. Returned as [key, value] pairs with every fault found;
 * values are left unchecked here, so one message can name all that is wrong.
 * @throws {Refusal} when the text is not a JSON object at all
 */
export function parseOptionsText(text: string): { entries: [string, unknown][]; faults: string[] } {
  assertOptionsSize(text)
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch {
    // The parser's own message quotes the input, which may hold a secret.
    throw new Refusal('the options are not JSON: kubelet passes one JSON object of strings as the last argument')
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) {
    const kind = parsed === null ? 'null' : Array.isArray(parsed) ? 'an array' : `a ${typeof parsed}`
    throw new Refusal(`the options are ${kind}: kubelet passes one JSON object of strings as the last argument`)
  }
  const entries = Object.entries(parsed)
  // A nested value is refused for itself, and its keys are no options.
  const flat = entries.every(([, value]) => typeof value !== 'object')
  const repeated = flat ? repeatedKeys(text, entries.length) : []
  const faults = repeated.map((key) => `option ${quoted(key)} is given twice: keep one`)
  return { entries, faults }
}

// JSON.parse keeps the last of two equal keys. In valid JSON only a key is followed by a colon,
// so in a flat object the strings before colons are its keys.
const KEY = /"(?:[^"\\]|\\.)*"(\s*:)?/gs

function repeatedKeys(text: string, distinct: number): string[] {
  const keys: string[] = []
  for (const match of text.matchAll(KEY)) {
    if (match[1]) keys.push(JSON.parse(match[0].slice(0, -match[1].length)))
  }
  if (keys.length === distinct) return []
  const seen = new Set<string>()
  return [...new Set(keys.filter((key) => seen.size === seen.add(key).size))]
}

/** A pod's secrets by key, decoded. They live as long as the call, and are in no request, record, log or message. */
export type Secrets = ReadonlyMap<string, Uint8Array>

export const SECRET_PREFIX = 'kubernetes.io/secret/'
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/

/**
 * Reads the secrets out of mount's options argument (kubelet sends each value in base64, flexvolume/util.go).
 * @throws {Refusal} naming the key of one that cannot be decoded, never its value
 */
export function readSecrets(text: string): Secrets {
  const secrets = parseOptionsText(text).entries.filter(([key]) => key.startsWith(SECRET_PREFIX))
  const faults = secretFaults(secrets)
  if (faults.length > 0) throw new Refusal(faults)
  return new Map(
    secrets.map(([key, value]) => {
      if (typeof value === 'string' && BASE64.test(value)) {
        return [key.slice(SECRET_PREFIX.length), Buffer.from(value, 'base64')]
      }
      throw new Refusal(`option ${quoted(key)} is not base64: kubelet sends secrets so`)
    }),
  )
}

/** Faults in the sizes of secrets, which are not decoded for it. */
export function secretFaults(entries: readonly [string, unknown][]): string[] {
  let sizeBytes = 0
  const faults = entries.flatMap(([key, value]) => {
    if (!key.startsWith(SECRET_PREFIX)) return []
    if (typeof value === 'string') sizeBytes += Math.floor((value.length * 3) / 4)
    return fieldSizeFaults(`the name of option ${quoted(key)}`, key)
  })
  return [...faults, ...secretsSizeFaults(sizeBytes)]
}
