import { quoted, Refusal } from '../refusal/refusal.ts'
import { parseOptionsText } from './json-options.ts'

/** A pod's secrets by key, decoded. They live as long as the call, and are in no request, record, log or message. */
export type Secrets = ReadonlyMap<string, Uint8Array>

export const SECRET_PREFIX = 'kubernetes.io/secret/'
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/

/**
 * Reads the secrets out of mount's options argument (kubelet sends each value in base64, flexvolume/util.go).
 * @throws {Refusal} naming the key of one that cannot be decoded, never its value
 */
export function readSecrets(text: string): Secrets {
  const secrets = new Map<string, Uint8Array>()
  for (const [key, value] of parseOptionsText(text).entries) {
    if (!key.startsWith(SECRET_PREFIX)) continue
    if (typeof value !== 'string' || !BASE64.test(value)) {
      throw new Refusal(`option ${quoted(key)} is not base64: kubelet sends secrets so`)
    }
    secrets.set(key.slice(SECRET_PREFIX.length), Buffer.from(value, 'base64'))
  }
  return secrets
}
