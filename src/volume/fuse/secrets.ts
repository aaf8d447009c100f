import { createOptionFault } from '../../errors/fault.ts'
import { quoted, Refusal } from '../../errors/refusal.ts'
import { SECRET_FILE } from '../../host/helpers.ts'
import type { Secrets } from '../../request/json-options.ts'
import type { SecretKeys } from '../../request/rule.ts'
import { parseOptionName } from '../kind/options.ts'
import type { Stage } from '../kind/staged.ts'

/** Options, environment and file that pass a Secret's keys to a program. Its arguments name files, and contain no value. */
export interface DeliveredSecrets {
  options: string[]
  environment: Record<string, string>
  /** Content of the file that the daemon inherits. */
  secretFile?: Uint8Array
}

/**
 * Passes each key as the rule says.
 * @param secretKeys the entry of the rule that allowed the mount
 * @throws {Refusal} for a value that a variable cannot carry, and for an option that the pod's author has set
 */
export function deliverSecrets(
  secrets: Secrets,
  secretKeys: SecretKeys,
  mountOptions: readonly string[],
  { put }: Pick<Stage, 'put'>,
): DeliveredSecrets {
  const written = new Set(mountOptions.map(parseOptionName))
  const delivered: DeliveredSecrets = { options: [], environment: {} }
  for (const [index, [key, value]] of [...secrets].entries()) {
    const delivery = Object.hasOwn(secretKeys, key) ? secretKeys[key] : undefined
    if (delivery === undefined)
      throw Refusal.of('secret', `the Secret has ${quoted(key)}, which no rule names`, 'remove the key')
    if ('variable' in delivery) {
      delivered.environment[delivery.variable] = decodeVariable(key, value)
      continue
    }
    const { option, keep } = delivery
    if (written.has(option)) {
      throw new Refusal(
        createOptionFault(
          'secret',
          'mountOptions',
          `has ${option}, which the node's configuration sets from the Secret`,
          'leave it out',
        ),
      )
    }
    if (keep === 'daemon') delivered.secretFile = value
    // The file has a name of its own, because the key may be too long for a file name.
    delivered.options.push(`${option}=${keep === 'daemon' ? SECRET_FILE : put(`secret-${index}`, value)}`)
  }
  return delivered
}

function decodeVariable(key: string, value: Uint8Array): string {
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(value)
    if (!text.includes('\0')) return text
  } catch {
    // The refusal below omits the value.
  }
  throw Refusal.of(
    'secret',
    `key ${quoted(key)} of the Secret has a NUL or is not UTF-8, so no environment variable can carry it`,
    'correct the value',
  )
}
