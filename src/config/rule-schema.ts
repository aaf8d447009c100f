import * as z from 'zod/mini'
import { quoteValue } from '../errors/refusal.ts'
import type { MapRule } from './map-rule.ts'
import { parseGroupId } from './option-faults.ts'
import { type AllowRule, CSI_LIFECYCLES, isValidSourceEntry, type SecretKeys } from './rule.ts'

/** Creates the message of a configuration schema: the invalid value, and the remedy. */
export const createSchemaError = (remedy: string) => ({
  error: (issue: { input?: unknown }) => `is ${quoteValue(issue.input)}: ${remedy}`,
})

export const createFlagSchema = () => z.optional(z.boolean(createSchemaError('write true or false')))

/** @param isValid a pattern, which a JSON schema can have too, or a function for what no pattern expresses */
function createTextListSchema(remedy: string, isValid: RegExp | ((text: string) => boolean)) {
  const rule = createSchemaError(remedy)
  const check = typeof isValid === 'function' ? z.refine<string>(isValid, rule) : z.regex(isValid, rule)
  return z.optional(z.array(z.string(rule).check(check), createSchemaError('write a list')))
}

export const createEnumSchema = <const V extends readonly [string, ...string[]]>(values: V) =>
  z.enum(values, createSchemaError(`use one of ${values.join(', ')}`))

const createEnumListSchema = <const V extends readonly [string, ...string[]]>(values: V) =>
  z.optional(z.array(createEnumSchema(values), createSchemaError('write a list')))

function isGroupRange(text: string): boolean {
  const ends = text.split('-')
  const [first = 0, last = first] = ends.map(Number)
  return ends.length <= 2 && ends.every((end) => typeof parseGroupId(end) === 'number') && first <= last
}

const GROUP_RANGE_REMEDY = 'write a group like "2000" or a range like "2000-2999"'

/** The keys that Kubernetes allows in a Secret. */
const SECRET_KEY_PATTERN = /^[-._a-zA-Z0-9]{1,253}$/
const MOUNT_OPTION_PATTERN = /^[A-Za-z][A-Za-z0-9_.-]{0,63}$/
const ENVIRONMENT_VARIABLE_PATTERN = /^[A-Z][A-Z0-9_]{0,63}$/
/** The dynamic linker, shells and interpreters run code that these variables name. */
const UNSAFE_VARIABLE_PATTERN =
  /^(PATH|IFS|ENV|SHELLOPTS|BASH.*|LD_.*|LC_.*|GLIBC_.*|GCONV_.*|MALLOC_.*|PYTHON.*|PERL.*|RUBY.*|NODE_.*|JAVA_.*|HOME|TMPDIR|MODEKEEP.*)$/

const SECRET_DELIVERY_REMEDY =
  'write {"option": "passwd_file"} for a file that this mount option names, with "keep": "daemon" if the daemon reads it again, or {"variable": "AWS_SECRET_ACCESS_KEY"} for an environment variable, none that a linker, a shell or an interpreter reads'

const createMountOptionSchema = () => z.string().check(z.regex(MOUNT_OPTION_PATTERN))
const createSecretDeliverySchema = () =>
  z.union(
    [
      z.strictObject({ option: createMountOptionSchema(), keep: z.optional(z.literal('daemon')) }),
      z.strictObject({
        variable: z
          .string()
          .check(z.refine((name) => ENVIRONMENT_VARIABLE_PATTERN.test(name) && !UNSAFE_VARIABLE_PATTERN.test(name))),
      }),
    ],
    createSchemaError(SECRET_DELIVERY_REMEDY),
  )

export const createSecretKeysSchema = () =>
  z
    .record(
      z.string().check(z.regex(SECRET_KEY_PATTERN, createSchemaError('write a key of a Secret'))),
      createSecretDeliverySchema(),
      createSchemaError('write an object'),
    )
    .check(
      z.refine(
        hasAtMostOneDaemonSecret,
        createSchemaError('write "keep": "daemon" for one key only: a program inherits one descriptor'),
      ),
    )

const hasAtMostOneDaemonSecret = (keys: SecretKeys): boolean =>
  Object.values(keys).filter((one) => 'keep' in one && one.keep === 'daemon').length <= 1

/** Like the keys of the configuration: a call creates only the schemas of the keys that its rules have. */
export const ALLOW_RULE_KEY_SCHEMAS = {
  namespaces: () => createTextListSchema('write the name of a namespace, "*" in it for anything', /^[-a-z0-9*]{1,63}$/),
  volumes: () => createEnumListSchema(CSI_LIFECYCLES),
  sources: () =>
    createTextListSchema(
      'write "/srv/volumes/*" for what lies below it or "/srv/volumes/data" for exactly that, or the same of host:/export, //server/share or a name like remote:bucket; ' +
        'without "..", "." or a trailing slash, and {namespace} only as a whole directory name',
      isValidSourceEntry,
    ),
  fsTypes: () => createTextListSchema('write a file system type', /./),
  ownership: () => createEnumListSchema(['none', 'walk', 'idmap', 'auto']),
  groupAccess: () => createEnumListSchema(['keep', 'grant']),
  fsGroups: () => createTextListSchema(GROUP_RANGE_REMEDY, isGroupRange),
  idmapFrom: () => createTextListSchema(GROUP_RANGE_REMEDY, isGroupRange),
  mountOptions: () => createTextListSchema('write a mount option', /^[^,]+$/),
  readOnly: createFlagSchema,
  singleNode: createFlagSchema,
  setGid: () => z.optional(z.union([z.boolean(), z.literal('root')], createSchemaError('write true, false or "root"'))),
  systemGroups: createFlagSchema,
  protectedGroups: () => createTextListSchema(GROUP_RANGE_REMEDY, isGroupRange),
  submounts: () => z.optional(z.enum(['include'], createSchemaError('write "include"'))),
  secretKeys: () => z.optional(createSecretKeysSchema()),
} satisfies Record<keyof AllowRule, unknown>

const MAP_SOURCE_REMEDY =
  'write "/srv/shared/*" for what lies below it or "/srv/shared/data" for exactly that; ' +
  'without "..", "." or a trailing slash, and {namespace} only as a whole directory name'

/** A kind is named by its field in a pod, or by kubelet's plugin. */
const VOLUME_KIND_PATTERN = /^[A-Za-z]{1,40}$|^kubernetes\.io\/[a-z0-9-]{1,40}$/

/** The keys of a rule about volumes of other drivers. */
export const MAP_RULE_KEY_SCHEMAS = {
  namespaces: ALLOW_RULE_KEY_SCHEMAS.namespaces,
  volumes: () =>
    createTextListSchema(
      'write a kind of volume: emptyDir, csi, local, hostPath, flexVolume, kubernetes.io/nfs',
      VOLUME_KIND_PATTERN,
    ),
  sources: () =>
    createTextListSchema(
      MAP_SOURCE_REMEDY,
      (text) => text.startsWith('/') && !text.startsWith('//') && isValidSourceEntry(text),
    ),
  fsTypes: ALLOW_RULE_KEY_SCHEMAS.fsTypes,
  groups: () => createTextListSchema(GROUP_RANGE_REMEDY, isGroupRange),
  setGid: () => z.optional(z.literal('root', createSchemaError('write "root", or leave it out'))),
  groupAccess: () => z.optional(z.literal('grant', createSchemaError('write "grant", or leave it out'))),
  systemGroups: ALLOW_RULE_KEY_SCHEMAS.systemGroups,
  protectedGroups: ALLOW_RULE_KEY_SCHEMAS.protectedGroups,
} satisfies Record<keyof MapRule, unknown>

export const createAllowRulesSchema = () => createRuleListSchema(ALLOW_RULE_KEY_SCHEMAS)

export const createMapRulesSchema = () => createRuleListSchema(MAP_RULE_KEY_SCHEMAS)

type RuleKeySchemas = Readonly<Record<string, () => unknown>>

const createRuleListSchema = (keys: RuleKeySchemas) =>
  z
    .array(z.unknown(), createSchemaError('write a list of rules'))
    .check(
      z.superRefine(
        (rules, { issues }) => void issues.push(...rules.flatMap((rule, at) => findRuleIssues(keys, rule, at))),
      ),
    )

function findRuleIssues(keys: RuleKeySchemas, rule: unknown, at: number) {
  const { data: entries, error: noObject } = z.safeParse(z.looseObject({}, createSchemaError('write an object')), rule)
  if (noObject)
    return noObject.issues.map(({ message }) => ({ code: 'custom' as const, input: rule, path: [at], message }))
  const unknown = Object.keys(entries).filter((key) => !Object.hasOwn(keys, key))
  const known = Object.entries(keys).filter(([key]) => Object.hasOwn(entries, key))
  const issues = known.flatMap(([key, schema]) => {
    const { error } = z.safeParse(schema() as z.ZodMiniType, entries[key])
    return (error?.issues ?? []).map(({ path, message }) => ({ path: [at, key, ...path], message }))
  })
  if (unknown.length > 0) {
    const message = `has ${quoteValue(unknown)}: the keys of a rule are ${Object.keys(keys).join(', ')}`
    issues.unshift({ path: [at], message })
  }
  return issues.map((issue) => ({ code: 'custom' as const, input: rule, ...issue }))
}

/** Keys of earlier versions that were replaced by rules. */
const REPLACED_CONFIG_KEYS = ['allowedSources', 'allowedFsTypes', 'allowedMountOptions']

export const isReplacedConfigKey = (key: string) => REPLACED_CONFIG_KEYS.includes(key)

const filterStrings = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((text): text is string => typeof text === 'string') : []

/** Formats the rules that replace the keys of earlier versions in a configuration. */
export function formatReplacementRules(replaced: Readonly<Record<string, unknown>>): string {
  const { allowedSources = ['/var/lib/modekeep/volumes'], allowedFsTypes, allowedMountOptions } = replaced
  const sources = filterStrings(allowedSources)
    .map((source) => (/^[^/:]+:?$/.test(source) ? source : `${source.replace(/\/$/, '')}/*`))
    .filter(isValidSourceEntry)
  const options = typeof allowedMountOptions === 'object' && allowedMountOptions !== null ? allowedMountOptions : {}
  const fsTypes = allowedFsTypes === undefined ? ['bind', 'tmpfs'] : filterStrings(allowedFsTypes)
  const listed = Object.entries(options).filter(([fsType]) => fsTypes.includes(fsType))
  const others = fsTypes.filter((fsType) => !listed.some(([name]) => name === fsType))
  const rules = [
    ...listed.map(([fsType, names]) => ({ sources, fsTypes: [fsType], mountOptions: filterStrings(names) })),
    ...(others.length > 0 ? [{ sources, fsTypes: others }] : []),
  ]
  return `"allow": ${JSON.stringify(rules)}`
}
