import * as z from 'zod/mini'
import { quoted } from '../refusal/refusal.ts'

const TRUE_FALSE = ['true', 'false'] as const

function oneOf<const V extends readonly [string, ...string[]]>(values: V) {
  return z.optional(z.enum(values, { error: (issue) => `is ${quoted(issue.input)}: use one of ${values.join(', ')}` }))
}

const text = z.optional(z.string({ error: (issue) => `is ${quoted(issue.input)}: write it as a JSON string` }))

/** The options a pod's author may write, and kubelet's own keys (flexvolume/util.go). Every value is a string. */
export const optionsSchema = z.strictObject({
  source: text,
  subPath: text,
  mountOptions: text,
  ownership: oneOf(['none', 'walk', 'idmap', 'auto']),
  idmapFrom: text,
  groupAccess: oneOf(['keep', 'grant']),
  fsGroupChangePolicy: oneOf(['OnRootMismatch', 'Always']),
  restoreOnUnmount: oneOf(TRUE_FALSE),
  'kubernetes.io/fsType': text,
  'kubernetes.io/readwrite': oneOf(['ro', 'rw']),
  'kubernetes.io/fsGroup': text,
  'kubernetes.io/mounterArgs.FsGroup': text,
  'kubernetes.io/pvOrVolumeName': text,
  'kubernetes.io/pod.name': text,
  'kubernetes.io/pod.namespace': text,
  'kubernetes.io/pod.uid': text,
  'kubernetes.io/serviceAccount.name': text,
})

export type Options = z.infer<typeof optionsSchema>

/** The options an author writes by hand, for messages and documentation. */
export const AUTHOR_KEYS = Object.keys(optionsSchema.shape).filter((key) => !key.startsWith('kubernetes.io/'))

const KUBELET_PREFIX = 'kubernetes.io/'

/** Checks parsed entries against the schema; every fault names its key, its value (never a secret's) and the way out. */
export function checkOptions(entries: readonly [string, unknown][]): { options: Options; faults: string[] } {
  const faults: string[] = []
  const known: [string, unknown][] = []
  const unknown: string[] = []
  for (const [key, value] of entries) {
    if (Object.hasOwn(optionsSchema.shape, key)) known.push([key, value])
    else if (!key.startsWith(KUBELET_PREFIX)) unknown.push(key)
    // Only kubelet may write below kubernetes.io/ (API validation): a key added by a newer kubelet must not break mounts.
    // Some of these values are secrets: never shown.
    else if (typeof value !== 'string') faults.push(`option ${quoted(key)} must be a JSON string`)
  }
  if (unknown.length > 0) faults.push(`unknown ${quoted(unknown)}: the options are ${AUTHOR_KEYS.join(', ')}`)
  const result = z.safeParse(optionsSchema, Object.fromEntries(known))
  if (result.success) return { options: result.data, faults }
  for (const issue of result.error.issues) faults.push(`option "${issue.path.join('.')}" ${issue.message}`)
  return { options: {}, faults }
}
