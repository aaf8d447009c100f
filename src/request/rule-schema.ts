import * as z from 'zod/mini'
import { quoted } from '../refusal/refusal.ts'
import type { MapRule } from './map-rule.ts'
import { LIFECYCLES, type Rule } from './rule.ts'
import { isEntry } from './rule-source.ts'
import { secretKeysSchema } from './secret-keys.ts'
import { flag, wants } from './wants.ts'

function listOf(what: string, isFine: (text: string) => boolean) {
  const rule = wants(what)
  return z.optional(z.array(z.string(rule).check(z.refine(isFine, rule)), wants('write a list')))
}

const listOfEach = <const V extends readonly [string, ...string[]]>(values: V) =>
  z.optional(z.array(z.enum(values, wants(`use one of ${values.join(', ')}`)), wants('write a list')))

// (gid_t)-1 is no group.
const LARGEST_GROUP = 4294967294
const NUMBER = /^(0|[1-9][0-9]{0,9})$/

function isRange(text: string): boolean {
  const ends = text.split('-')
  const [first = 0, last = first] = ends.map(Number)
  return ends.length <= 2 && ends.every((end) => NUMBER.test(end)) && first <= last && last <= LARGEST_GROUP
}

const RANGE = 'write a group like "2000" or a range like "2000-2999"'

/** As the keys of the configuration: a call makes those that its rules have. */
export const RULE_KEYS = {
  namespaces: () =>
    listOf('write the name of a namespace, "*" in it for anything', (text) => /^[-a-z0-9*]{1,63}$/.test(text)),
  volumes: () => listOfEach(LIFECYCLES),
  sources: () =>
    listOf(
      'write "/srv/volumes/*" for what lies below it or "/srv/volumes/data" for exactly that, or the same of host:/export, //server/share or a name like remote:bucket; ' +
        'without "..", "." or a trailing slash, and {namespace} only as a whole directory name',
      isEntry,
    ),
  fsTypes: () => listOf('write a file system type', (text) => text !== ''),
  ownership: () => listOfEach(['none', 'walk', 'idmap', 'auto']),
  groupAccess: () => listOfEach(['keep', 'grant']),
  fsGroups: () => listOf(RANGE, isRange),
  idmapFrom: () => listOf(RANGE, isRange),
  mountOptions: () => listOf('write a mount option', (text) => text !== '' && !text.includes(',')),
  readOnly: flag,
  singleNode: flag,
  setGid: () => z.optional(z.union([z.boolean(), z.literal('root')], wants('write true, false or "root"'))),
  systemGroups: flag,
  protectedGroups: () => listOf(RANGE, isRange),
  submounts: () => z.optional(z.enum(['include'], wants('write "include"'))),
  secretKeys: () => z.optional(secretKeysSchema()),
} satisfies Record<keyof Rule, unknown>

const HOST_DIRECTORIES =
  'write "/srv/shared/*" for what lies below it or "/srv/shared/data" for exactly that; ' +
  'without "..", "." or a trailing slash, and {namespace} only as a whole directory name'

/** A kind by its field in a pod, or by its plugin of kubelet's. */
const isKindOfVolume = (text: string) => /^[A-Za-z]{1,40}$|^kubernetes\.io\/[a-z0-9-]{1,40}$/.test(text)

/** The same of the rules about volumes of other drivers. */
export const MAP_RULE_KEYS = {
  namespaces: RULE_KEYS.namespaces,
  volumes: () =>
    listOf('write a kind of volume: emptyDir, csi, local, hostPath, flexVolume, kubernetes.io/nfs', isKindOfVolume),
  sources: () => listOf(HOST_DIRECTORIES, (text) => text.startsWith('/') && !text.startsWith('//') && isEntry(text)),
  fsTypes: RULE_KEYS.fsTypes,
  groups: () => listOf(RANGE, isRange),
  setGid: () => z.optional(z.literal('root', wants('write "root", or leave it out'))),
  systemGroups: RULE_KEYS.systemGroups,
  protectedGroups: RULE_KEYS.protectedGroups,
} satisfies Record<keyof MapRule, unknown>

/** The rules of the node's configuration: `allow`. */
export const rulesSchema = () => listOfRules(RULE_KEYS)

/** Those of volumes of other drivers: `map`. */
export const mapRulesSchema = () => listOfRules(MAP_RULE_KEYS)

type Keys = Readonly<Record<string, () => unknown>>

const listOfRules = (keys: Keys) =>
  z
    .array(z.unknown(), wants('write a list of rules'))
    .check(
      z.superRefine((rules, { issues }) => void issues.push(...rules.flatMap((rule, at) => issuesOf(keys, rule, at)))),
    )

function issuesOf(keys: Keys, rule: unknown, at: number) {
  const { data: entries, error: noObject } = z.safeParse(z.looseObject({}, wants('write an object')), rule)
  if (noObject)
    return noObject.issues.map(({ message }) => ({ code: 'custom' as const, input: rule, path: [at], message }))
  const unknown = Object.keys(entries).filter((key) => !Object.hasOwn(keys, key))
  const known = Object.entries(keys).filter(([key]) => Object.hasOwn(entries, key))
  const found = known.flatMap(([key, schema]) => {
    const { error } = z.safeParse(schema() as z.ZodMiniType, entries[key])
    return (error?.issues ?? []).map(({ path, message }) => ({ path: [at, key, ...path], message }))
  })
  if (unknown.length > 0) {
    const message = `has ${quoted(unknown)}: the keys of a rule are ${Object.keys(keys).join(', ')}`
    found.unshift({ path: [at], message })
  }
  return found.map((issue) => ({ code: 'custom' as const, input: rule, ...issue }))
}

/** Keys of modekeep's that rules have replaced. */
const OLD_KEYS = ['allowedSources', 'allowedFsTypes', 'allowedMountOptions']

export const isOldKey = (key: string) => OLD_KEYS.includes(key)

const texts = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((text): text is string => typeof text === 'string') : []

/** The rules that mean what the old keys of a configuration meant, as they are to be written instead. */
export function rulesInstead(old: Readonly<Record<string, unknown>>): string {
  const { allowedSources = ['/var/lib/modekeep/volumes'], allowedFsTypes, allowedMountOptions } = old
  const sources = texts(allowedSources)
    .map((source) => (/^[^/:]+:?$/.test(source) ? source : `${source.replace(/\/$/, '')}/*`))
    .filter(isEntry)
  const options = typeof allowedMountOptions === 'object' && allowedMountOptions !== null ? allowedMountOptions : {}
  const fsTypes = allowedFsTypes === undefined ? ['bind', 'tmpfs'] : texts(allowedFsTypes)
  const told = Object.entries(options).filter(([fsType]) => fsTypes.includes(fsType))
  const others = fsTypes.filter((fsType) => !told.some(([name]) => name === fsType))
  const rules = [
    ...told.map(([fsType, names]) => ({ sources, fsTypes: [fsType], mountOptions: texts(names) })),
    ...(others.length > 0 ? [{ sources, fsTypes: others }] : []),
  ]
  return `"allow": ${JSON.stringify(rules)}`
}
