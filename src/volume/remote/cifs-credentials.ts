import { Refusal } from '../../refusal/refusal.ts'
import type { Secrets } from '../../request/secrets.ts'

/** mount.cifs: MAX_USERNAME_SIZE, MOUNT_PASSWD_SIZE (of what it makes of a password), MAX_DOMAIN_SIZE. Bytes. */
const LONGEST = { username: 256, password: 512, domain: 256 } as const
const KEYS = Object.keys(LONGEST) as (keyof typeof LONGEST)[]

const NUL = 0
const NEWLINE = 10
const COMMA = 44

/**
 * The credentials file of mount.cifs(8): a line for each value, which it takes byte for byte up to the newline.
 * @returns undefined where the secret has no credentials
 * @throws {Refusal} naming the key of a value that the format cannot carry, never the value
 */
export function credentialsOf(secrets: Secrets): Uint8Array | undefined {
  if (!KEYS.some((key) => secrets.has(key))) return undefined
  const faults: string[] = []
  const lines = KEYS.flatMap((key) => {
    const value = secrets.get(key)
    if (value === undefined) {
      if (key !== 'domain') faults.push(`the secret has no key "${key}": add it`)
      return []
    }
    const fault = faultOf(key, value)
    if (fault !== undefined) faults.push(`the secret's "${key}" ${fault}`)
    return [Buffer.from(`${key}=`), value, Buffer.from('\n')]
  })
  if (faults.length > 0) throw new Refusal(faults)
  return Buffer.concat(lines)
}

function faultOf(key: keyof typeof LONGEST, value: Uint8Array): string | undefined {
  if (value.includes(NEWLINE)) {
    return 'has a newline, which no CIFS credential can: write it without (printf instead of echo)'
  }
  if (value.includes(NUL)) return 'has a NUL byte, which no CIFS credential can: write it without'
  const commas = value.filter((byte) => byte === COMMA).length
  // Of a password it doubles the commas, as the kernel wants them; of the others they would begin a mount option.
  if (commas > 0 && key !== 'password') return 'has a comma, which mount.cifs cannot pass on: write it without'
  const length = value.length + commas
  if (length >= LONGEST[key]) {
    return `is too long: mount.cifs takes ${LONGEST[key] - 1} bytes${key === 'password' ? ', a comma counted twice' : ''}`
  }
  return value.length === 0 && key === 'username' ? 'is empty: write the name of a user' : undefined
}
