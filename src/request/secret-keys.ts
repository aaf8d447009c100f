import * as z from 'zod/mini'
import { quoted } from '../refusal/refusal.ts'
import { SECRET_PREFIX } from './json-options.ts'
import { wants } from './wants.ts'

/** As Kubernetes names the keys of a Secret. */
const KEY = /^[-._a-zA-Z0-9]{1,253}$/
const OPTION = /^[A-Za-z][A-Za-z0-9_.-]{0,63}$/
const VARIABLE = /^[A-Z][A-Z0-9_]{0,63}$/
/** The dynamic linker, shells and interpreters run code that these variables name. */
const UNSAFE =
  /^(PATH|IFS|ENV|SHELLOPTS|BASH.*|LD_.*|LC_.*|GLIBC_.*|GCONV_.*|MALLOC_.*|PYTHON.*|PERL.*|RUBY.*|NODE_.*|JAVA_.*|HOME|TMPDIR|MODEKEEP.*)$/

const DELIVERY =
  'write {"option": "passwd_file"} for a file that this mount option names, with "keep": "daemon" if the daemon reads it again, or {"variable": "AWS_SECRET_ACCESS_KEY"} for an environment variable, none that a linker, a shell or an interpreter reads'

const option = () => z.string().check(z.regex(OPTION))
const delivery = () =>
  z.union(
    [
      z.strictObject({ option: option(), keep: z.optional(z.literal('daemon')) }),
      z.strictObject({ variable: z.string().check(z.refine((name) => VARIABLE.test(name) && !UNSAFE.test(name))) }),
    ],
    wants(DELIVERY),
  )

export const secretKeysSchema = () =>
  z
    .record(z.string().check(z.regex(KEY, wants('write a key of a Secret'))), delivery(), wants('write an object'))
    .check(
      z.refine(hasOneDescriptor, wants('write "keep": "daemon" for one key only: a program inherits one descriptor')),
    )

const hasOneDescriptor = (keys: SecretKeys): boolean =>
  Object.values(keys).filter((one) => 'keep' in one && one.keep === 'daemon').length <= 1

/**
 * How a key of a Secret reaches a FUSE program. `option`: the mount option that names a file with the value. The file
 * exists until the mount is ready; with `keep` the daemon inherits it. `variable`: an environment variable.
 */
export type SecretDelivery = { option: string; keep?: 'daemon' | undefined } | { variable: string }

export type SecretKeys = Readonly<Record<string, SecretDelivery>>

/** What a kind takes of a Secret: these keys, or those that a rule of the node names. */
export type TakenSecrets = readonly string[] | 'by rule'

/** Refuses keys that a kind would ignore: its server or program would not get what the author meant. */
export function secretKeyFaults(
  entries: readonly [string, unknown][],
  kind: { name: string; secretKeys?: TakenSecrets } | undefined,
): string[] {
  if (kind === undefined || kind.secretKeys === 'by rule') return []
  const { name, secretKeys: taken = [] } = kind
  const keys = entries.flatMap(([key]) => (key.startsWith(SECRET_PREFIX) ? [key.slice(SECRET_PREFIX.length)] : []))
  const unknown = keys.filter((key) => !taken.includes(key))
  if (unknown.length === 0) return []
  const takes =
    taken.length === 0 ? 'it takes none, leave out secretRef' : `it takes ${taken.join(', ')}, remove the others`
  return [`the Secret has ${quoted(unknown.join(', '))}, which ${name} does not take: ${takes}`]
}
