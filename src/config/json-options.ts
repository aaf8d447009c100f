import { createOptionFault, type Fault } from '../errors/fault.ts'
import { quoteValue, Refusal } from '../errors/refusal.ts'
import { assertOptionsSize, checkFieldSize, checkSecretsSize } from '../kernel/path/input-sizes.ts'

/**
 * Parses kubelet's options argument, a flat JSON object of strings. Returns [key, value] pairs and all faults found.
 * Values are not checked here, so that one message can name everything that is wrong.
 * @throws {Refusal} if the text is not a JSON object
 */
export function parseOptionsJson(text: string): { entries: [string, unknown][]; faults: Fault[] } {
  assertOptionsSize(text)
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch {
    // The parser's own message quotes the input, which may contain a secret.
    throw Refusal.of(
      'option-format',
      'the options are not JSON',
      undefined,
      'kubelet passes one JSON object of strings as the last argument',
    )
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) {
    const kind = parsed === null ? 'null' : Array.isArray(parsed) ? 'an array' : `a ${typeof parsed}`
    throw Refusal.of(
      'option-format',
      `the options are ${kind}`,
      undefined,
      'kubelet passes one JSON object of strings as the last argument',
    )
  }
  const entries = Object.entries(parsed)
  // A nested value is refused by itself, and its keys are no options.
  const isFlat = entries.every(([, value]) => typeof value !== 'object')
  const repeated = isFlat ? findRepeatedJsonKeys(text, entries.length) : []
  const faults = repeated.map((key) => createOptionFault('option-format', key, 'is given twice', 'keep one'))
  return { entries, faults }
}

// JSON.parse keeps the last of two equal keys. In valid JSON only a key is followed by a colon, so in a flat object the
// strings before colons are its keys.
const JSON_KEY_PATTERN = /"(?:[^"\\]|\\.)*"(\s*:)?/gs

function findRepeatedJsonKeys(text: string, distinct: number): string[] {
  const keys: string[] = []
  for (const match of text.matchAll(JSON_KEY_PATTERN)) {
    if (match[1]) keys.push(JSON.parse(match[0].slice(0, -match[1].length)))
  }
  if (keys.length === distinct) return []
  const seen = new Set<string>()
  return [...new Set(keys.filter((key) => seen.size === seen.add(key).size))]
}

/** A pod's secrets by key, decoded. They live as long as the call, and are in no request, record, log or message. */
export type PodSecrets = ReadonlyMap<string, Uint8Array>

export const SECRET_KEY_PREFIX = 'kubernetes.io/secret/'
const BASE64_PATTERN = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/

/**
 * Reads the secrets from mount's options argument (kubelet sends each value in base64, flexvolume/util.go).
 * @throws {Refusal} that names the key of an invalid secret, never its value
 */
export function decodePodSecrets(text: string): PodSecrets {
  const secrets = parseOptionsJson(text).entries.filter(([key]) => key.startsWith(SECRET_KEY_PREFIX))
  const faults = findSecretSizeFaults(secrets)
  if (faults.length > 0) throw new Refusal(faults)
  return new Map(
    secrets.map(([key, value]) => {
      if (typeof value === 'string' && BASE64_PATTERN.test(value)) {
        return [key.slice(SECRET_KEY_PREFIX.length), Buffer.from(value, 'base64')]
      }
      throw new Refusal(createOptionFault('option-format', key, 'is not base64', undefined, 'kubelet sends secrets so'))
    }),
  )
}

/** Returns faults in the sizes of secrets, without decoding them. */
export function findSecretSizeFaults(entries: readonly [string, unknown][]): Fault[] {
  let sizeBytes = 0
  const faults = entries.flatMap(([key, value]) => {
    if (!key.startsWith(SECRET_KEY_PREFIX)) return []
    if (typeof value === 'string') sizeBytes += Math.floor((value.length * 3) / 4)
    return checkFieldSize(`the name of option ${quoteValue(key)}`, key)
  })
  return [...faults, ...checkSecretsSize(sizeBytes)]
}
