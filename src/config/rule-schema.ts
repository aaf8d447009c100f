import * as z from 'zod/mini'
import { quoteValue } from '../errors/refusal.ts'
import type { MapRule } from './map-rule.ts'
import { parseGroup } from './option-faults.ts'
import { isSourceEntry, LIFECYCLES, type Rule, type SecretKeys } from './rule.ts'

/** Creates the message of a configuration schema: the invalid value, and the remedy. */
export const formatSchemaError = (remedy: string) => ({
  error: (issue: { input?: unknown }) => `is ${quoteValue(issue.input)}: ${remedy}`,
})

export const createFlagSchema = () => z.optional(z.boolean(formatSchemaError('write true or false')))

function createListSchema(remedy: string, isFine: (text: string) => boolean) {
  const rule = formatSchemaError(remedy)
  return z.optional(z.array(z.string(rule).check(z.refine(isFine, rule)), formatSchemaError('write a list')))
}

export const createEnumSchema = <const V extends readonly [string, ...string[]]>(values: V) =>
  z.enum(values, formatSchemaError(`use one of ${values.join(', ')}`))

const createEnumListSchema = <const V extends readonly [string, ...string[]]>(values: V) =>
  z.optional(z.array(createEnumSchema(values), formatSchemaError('write a list')))

function isRange(text: string): boolean {
  const ends = text.split('-')
  const [first = 0, last = first] = ends.map(Number)
  return ends.length <= 2 && ends.every((end) => typeof parseGroup(end) === 'number') && first <= last
}

const RANGE_REMEDY = 'write a group like "2000" or a range like "2000-2999"'

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

/** Like the keys of the configuration: a call creates only the schemas of the keys that its rules have. */
export const RULE_KEYS = {
  namespaces: () =>
    createListSchema('write the name of a namespace, "*" in it for anything', (text) =>
      /^[-a-z0-9*]{1,63}$/.test(text),
    ),
  volumes: () => createEnumListSchema(LIFECYCLES),
  sources: () =>
    createListSchema(
      'write "/srv/volumes/*" for what lies below it or "/srv/volumes/data" for exactly that, or the same of host:/export, //server/share or a name like remote:bucket; ' +
        'without "..", "." or a trailing slash, and {namespace} only as a whole directory name',
      isSourceEntry,
    ),
  fsTypes: () => createListSchema('write a file system type', (text) => text !== ''),
  ownership: () => createEnumListSchema(['none', 'walk', 'idmap', 'auto']),
  groupAccess: () => createEnumListSchema(['keep', 'grant']),
  fsGroups: () => createListSchema(RANGE_REMEDY, isRange),
  idmapFrom: () => createListSchema(RANGE_REMEDY, isRange),
  mountOptions: () => createListSchema('write a mount option', (text) => text !== '' && !text.includes(',')),
  readOnly: createFlagSchema,
  singleNode: createFlagSchema,
  setGid: () => z.optional(z.union([z.boolean(), z.literal('root')], formatSchemaError('write true, false or "root"'))),
  systemGroups: createFlagSchema,
  protectedGroups: () => createListSchema(RANGE_REMEDY, isRange),
  submounts: () => z.optional(z.enum(['include'], formatSchemaError('write "include"'))),
  secretKeys: () => z.optional(createSecretKeysSchema()),
} satisfies Record<keyof Rule, unknown>

const HOST_DIRECTORY_REMEDY =
  'write "/srv/shared/*" for what lies below it or "/srv/shared/data" for exactly that; ' +
  'without "..", "." or a trailing slash, and {namespace} only as a whole directory name'

/** A kind is named by its field in a pod, or by kubelet's plugin. */
const isKindOfVolume = (text: string) => /^[A-Za-z]{1,40}$|^kubernetes\.io\/[a-z0-9-]{1,40}$/.test(text)

/** The keys of a rule about volumes of other drivers. */
export const MAP_RULE_KEYS = {
  namespaces: RULE_KEYS.namespaces,
  volumes: () =>
    createListSchema(
      'write a kind of volume: emptyDir, csi, local, hostPath, flexVolume, kubernetes.io/nfs',
      isKindOfVolume,
    ),
  sources: () =>
    createListSchema(
      HOST_DIRECTORY_REMEDY,
      (text) => text.startsWith('/') && !text.startsWith('//') && isSourceEntry(text),
    ),
  fsTypes: RULE_KEYS.fsTypes,
  groups: () => createListSchema(RANGE_REMEDY, isRange),
  setGid: () => z.optional(z.literal('root', formatSchemaError('write "root", or leave it out'))),
  systemGroups: RULE_KEYS.systemGroups,
  protectedGroups: RULE_KEYS.protectedGroups,
} satisfies Record<keyof MapRule, unknown>

export const createRulesSchema = () => createRuleListSchema(RULE_KEYS)

export const createMapRulesSchema = () => createRuleListSchema(MAP_RULE_KEYS)

type RuleKeySchemas = Readonly<Record<string, () => unknown>>

const createRuleListSchema = (keys: RuleKeySchemas) =>
  z
    .array(z.unknown(), formatSchemaError('write a list of rules'))
    .check(
      z.superRefine(
        (rules, { issues }) => void issues.push(...rules.flatMap((rule, at) => findRuleIssues(keys, rule, at))),
      ),
    )

function findRuleIssues(keys: RuleKeySchemas, rule: unknown, at: number) {
  const { data: entries, error: noObject } = z.safeParse(z.looseObject({}, formatSchemaError('write an object')), rule)
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
const REPLACED_KEYS = ['allowedSources', 'allowedFsTypes', 'allowedMountOptions']

export const isReplacedKey = (key: string) => REPLACED_KEYS.includes(key)

const pickTexts = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((text): text is string => typeof text === 'string') : []

/** Formats the rules that replace the keys of earlier versions in a configuration. */
export function formatReplacementRules(replaced: Readonly<Record<string, unknown>>): string {
  const { allowedSources = ['/var/lib/modekeep/volumes'], allowedFsTypes, allowedMountOptions } = replaced
  const sources = pickTexts(allowedSources)
    .map((source) => (/^[^/:]+:?$/.test(source) ? source : `${source.replace(/\/$/, '')}/*`))
    .filter(isSourceEntry)
  const options = typeof allowedMountOptions === 'object' && allowedMountOptions !== null ? allowedMountOptions : {}
  const fsTypes = allowedFsTypes === undefined ? ['bind', 'tmpfs'] : pickTexts(allowedFsTypes)
  const listed = Object.entries(options).filter(([fsType]) => fsTypes.includes(fsType))
  const others = fsTypes.filter((fsType) => !listed.some(([name]) => name === fsType))
  const rules = [
    ...listed.map(([fsType, names]) => ({ sources, fsTypes: [fsType], mountOptions: pickTexts(names) })),
    ...(others.length > 0 ? [{ sources, fsTypes: others }] : []),
  ]
  return `"allow": ${JSON.stringify(rules)}`
}
