import * as z from 'zod/mini'
import { createFault, type Fault, SECRET_REF_WORD } from '../errors/fault.ts'
import { quoted } from '../errors/refusal.ts'
import { formatSchemaError } from './schema-error.ts'

/** The keys that Kubernetes allows in a Secret. */
const KEY_PATTERN = /^[-._a-zA-Z0-9]{1,253}$/
const OPTION_PATTERN = /^[A-Za-z][A-Za-z0-9_.-]{0,63}$/
const VARIABLE_PATTERN = /^[A-Z][A-Z0-9_]{0,63}$/
/** The dynamic linker, shells and interpreters run code that these variables name. */
const UNSAFE_VARIABLE =
  /^(PATH|IFS|ENV|SHELLOPTS|BASH.*|LD_.*|LC_.*|GLIBC_.*|GCONV_.*|MALLOC_.*|PYTHON.*|PERL.*|RUBY.*|NODE_.*|JAVA_.*|HOME|TMPDIR|MODEKEEP.*)$/

const DELIVERY_REMEDY =
  'write {"option": "passwd_file"} for a file that this mount option names, with "keep": "daemon" if the daemon reads it again, or {"variable": "AWS_SECRET_ACCESS_KEY"} for an environment variable, none that a linker, a shell or an interpreter reads'

const createOptionSchema = () => z.string().check(z.regex(OPTION_PATTERN))
const createDeliverySchema = () =>
  z.union(
    [
      z.strictObject({ option: createOptionSchema(), keep: z.optional(z.literal('daemon')) }),
      z.strictObject({
        variable: z.string().check(z.refine((name) => VARIABLE_PATTERN.test(name) && !UNSAFE_VARIABLE.test(name))),
      }),
    ],
    formatSchemaError(DELIVERY_REMEDY),
  )

export const createSecretKeysSchema = () =>
  z
    .record(
      z.string().check(z.regex(KEY_PATTERN, formatSchemaError('write a key of a Secret'))),
      createDeliverySchema(),
      formatSchemaError('write an object'),
    )
    .check(
      z.refine(
        hasOneDescriptor,
        formatSchemaError('write "keep": "daemon" for one key only: a program inherits one descriptor'),
      ),
    )

const hasOneDescriptor = (keys: SecretKeys): boolean =>
  Object.values(keys).filter((one) => 'keep' in one && one.keep === 'daemon').length <= 1

/**
 * Delivery of a Secret's key to a FUSE program. `option`: a mount option that names a file with the value. The
 * file exists until the mount is ready; with `keep` the daemon inherits it. `variable`: an environment variable.
 */
export type SecretDelivery = { option: string; keep?: 'daemon' | undefined } | { variable: string }

export type SecretKeys = Readonly<Record<string, SecretDelivery>>

/** The keys of a Secret that a kind accepts: these, or those that a rule of the node names. */
export type AcceptedSecretKeys = readonly string[] | 'by rule'

/** Refuses keys that a kind would ignore, because its server or program would not get the value. */
export function findSecretKeyFaults(
  keys: readonly string[],
  kind: { name: string; secretKeys?: AcceptedSecretKeys } | undefined,
): Fault[] {
  if (kind === undefined || kind.secretKeys === 'by rule') return []
  const { name, secretKeys: taken = [] } = kind
  const unknown = keys.filter((key) => !taken.includes(key))
  if (unknown.length === 0) return []
  const takes =
    taken.length === 0
      ? `it takes none, leave out ${SECRET_REF_WORD}`
      : `it takes ${taken.join(', ')}, remove the others`
  return [createFault('secret', `the Secret has ${quoted(unknown.join(', '))}, which ${name} does not take`, takes)]
}
