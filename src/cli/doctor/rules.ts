import {
  type AllowRule,
  areSourceEntriesOverlapping,
  DEFAULT_ALLOWED_FS_TYPES,
  isSourceEntryWithin,
  matchesGlob,
  NAMESPACE_PLACEHOLDER,
  type SystemGroupRule,
} from '../../config/rule.ts'
import { quoteValue } from '../../errors/refusal.ts'
import { MOUNT_OPTIONS_BY_NAME } from '../../kernel/mount-table/mount-flags.ts'
import { volumeKindLookup } from '../../volume/index.ts'
import { isOptionAcceptedByKind, parseOptionName } from '../../volume/kind/options.ts'
import { type CheckResult, createFaultResult, createOkResult, createWarningResult } from './findings.ts'

/** Describes each rule in a sentence, and warns of probably unintended effects. */
export function* checkAllowRules(rules: readonly AllowRule[], file: string): Generator<CheckResult> {
  if (rules.length === 0)
    yield createWarningResult('no rule allows anything: every mount is refused', `add a rule to "allow" in ${file}`)
  for (const [at, rule] of rules.entries()) yield createOkResult(`rule ${at + 1}: ${describeRule(rule)}`)
  for (const [at, { fsTypes = [] }] of rules.entries()) {
    for (const fsType of fsTypes.filter((name) => volumeKindLookup.find(name) === undefined)) {
      const text = `rule ${at + 1} has fsTypes ${quoteValue(fsType)}, which modekeep cannot mount`
      yield createFaultResult(text, `write one of ${volumeKindLookup.names.join(', ')} in "allow" of ${file}`)
    }
  }
  for (const [at, rule] of rules.entries()) yield* checkRuleOptions(rule, at, file)
  for (const [at, rule] of rules.entries()) {
    for (const [before, earlier] of rules.slice(0, at).entries()) yield* checkRuleOrder(earlier, before, rule, at, file)
    for (const [other, writer] of rules.entries()) yield* checkNamespaceOverlap(rule, at, writer, other, file)
  }
}

/** Warns of rules that permit groups of the system. @param key `allow` or `map` */
export function* checkSystemGroups(
  rules: readonly SystemGroupRule[],
  key: string,
  file: string,
): Generator<CheckResult> {
  for (const [at, { systemGroups }] of rules.entries()) {
    if (!systemGroups) continue
    yield createWarningResult(
      `rule ${at + 1} of "${key}" has systemGroups: its pods can make executables that run with a group of the system for every user of the node`,
      `mount such volumes with nosuid or close a directory above them to others, then remove systemGroups from "${key}" in ${file}`,
    )
  }
}

const joinTexts = (texts: readonly string[] | undefined) => texts?.join(', ')

const hasVolumeTypeSource = (fsType: string) => volumeKindLookup.find(fsType)?.hasNoSource !== true

/** Describes in a sentence which pods may mount which volumes. */
function describeRule(rule: AllowRule): string {
  const { namespaces, volumes, sources, fsTypes = DEFAULT_ALLOWED_FS_TYPES, groupAccess, fsGroups } = rule
  const pods =
    namespaces === undefined ? 'pods of every namespace' : `pods of ${joinTexts(namespaces) || 'no namespace'}`
  const places = sources?.map((entry) => {
    const text = entry.replaceAll(NAMESPACE_PLACEHOLDER, '<their namespace>')
    return text.endsWith('/*') ? `what lies below ${text.slice(0, -2) || '/'}` : text
  })
  const withSource = fsTypes.filter(hasVolumeTypeSource)
  const had = [
    ...(withSource.length > 0
      ? [`${places === undefined ? 'every source' : joinTexts(places) || 'no source'} as ${joinTexts(withSource)}`]
      : []),
    ...fsTypes.filter((fsType) => !hasVolumeTypeSource(fsType)),
  ]
  return [
    ...(volumes === undefined ? [] : [`CSI volumes alone: ${joinTexts(volumes) || 'none'}`]),
    `${pods} may have ${had.join(', and ') || 'nothing'}, ${rule.readOnly ? 'for reading alone' : 'for writing too'}`,
    `ownership ${joinTexts(rule.ownership) ?? 'in any way'}`,
    ...(groupAccess === undefined ? [] : [`a walk gives ${joinTexts(groupAccess) || 'nothing'}`]),
    ...(fsGroups === undefined ? [] : [`fsGroup ${joinTexts(fsGroups) || 'none'}`]),
    ...(rule.idmapFrom === undefined ? [] : [`idmapFrom ${joinTexts(rule.idmapFrom) || 'none'}`]),
    ...(rule.mountOptions === undefined ? [] : [`mountOptions ${joinTexts(rule.mountOptions) || 'none'} alone`]),
    ...(rule.systemGroups ? ['idmap also of system groups'] : []),
    ...(rule.protectedGroups === undefined ? [] : [`protected groups ${joinTexts(rule.protectedGroups) || 'none'}`]),
    ...(rule.setGid === 'root' ? ['set-gid on the root of mapped volumes'] : []),
    ...(rule.setGid === false ? ['a walk gives directories no set-gid'] : []),
    ...(rule.secretKeys === undefined ? [] : [`keys of a Secret ${Object.keys(rule.secretKeys).join(', ') || 'none'}`]),
    ...(rule.singleNode ? ['walks of what servers have, which no other node may mount'] : []),
  ].join('; ')
}

/** Reports mount options that no volume type of the rule supports: they allow nothing, and pods would be refused. */
function* checkRuleOptions(
  { fsTypes = DEFAULT_ALLOWED_FS_TYPES, mountOptions = [] }: AllowRule,
  at: number,
  file: string,
) {
  const knownKinds = fsTypes.flatMap((fsType) => volumeKindLookup.find(fsType) ?? [])
  // The options of an external mount helper are known to that helper only.
  if (knownKinds.length === 0 || knownKinds.some(({ takesAny }) => takesAny)) return
  const names = knownKinds.map(({ name }) => name).join(', ')
  const not = knownKinds.length === 1 ? `${names} does not take` : `none of ${names} takes`
  const all = [
    ...new Set([...MOUNT_OPTIONS_BY_NAME.keys(), ...knownKinds.flatMap((kind) => [...kind.optionRules().keys()])]),
  ]
  for (const option of mountOptions) {
    const taken = knownKinds.map((kind) => isOptionAcceptedByKind(kind.optionRules(), option))
    if (taken.includes(true)) continue
    const forms = taken.filter((form) => typeof form === 'string')
    yield createFaultResult(
      `rule ${at + 1} has mountOptions ${quoteValue(option)}, which ${not}`,
      forms.length > 0
        ? `write it like ${[...new Set([parseOptionName(option), ...forms])].join(' or ')} in "allow" of ${file}`
        : `write one of ${all.join(', ')} in "allow" of ${file}, or leave it out`,
    )
  }
}

/** Warns of rules that are never used. The first matching rule decides, so a wider rule hides a narrower one after it. */
function* checkRuleOrder(
  earlier: AllowRule,
  before: number,
  rule: AllowRule,
  at: number,
  file: string,
): Generator<CheckResult> {
  if (isWiderOrEqualRule(earlier, rule)) {
    const text = `rule ${at + 1} has no effect: rule ${before + 1} before it matches all that it matches`
    yield createWarningResult(text, `remove it from "allow" in ${file}, or put it first`)
  } else if (isWiderOrEqualRule(rule, earlier)) {
    const text = `rule ${at + 1} is wider than rule ${before + 1} before it, which restricts nothing but what it itself matches`
    yield createWarningResult(text, `remove rule ${before + 1} from "allow" in ${file}, or narrow rule ${at + 1}`)
  }
}

/** True if `wide` matches everything that `narrow` matches. */
function isWiderOrEqualRule(wide: AllowRule, narrow: AllowRule): boolean {
  const {
    namespaces,
    sources,
    fsTypes = DEFAULT_ALLOWED_FS_TYPES,
    ownership,
    groupAccess,
    fsGroups,
    idmapFrom = [],
  } = wide
  const has = (all: readonly string[] | undefined, some: readonly string[] | undefined) =>
    all === undefined || (some?.every((one) => all.includes(one)) ?? false)
  const needsSource = (narrow.fsTypes ?? DEFAULT_ALLOWED_FS_TYPES).some(hasVolumeTypeSource)
  return (
    (namespaces === undefined ||
      (narrow.namespaces?.every((one) => namespaces.some((glob) => matchesGlob(glob, one))) ?? false)) &&
    (!needsSource ||
      sources === undefined ||
      (narrow.sources?.every((one) => sources.some((entry) => isSourceEntryWithin(one, entry))) ?? false)) &&
    has(wide.volumes, narrow.volumes) &&
    has(fsTypes, narrow.fsTypes ?? DEFAULT_ALLOWED_FS_TYPES) &&
    has(ownership, narrow.ownership) &&
    has(groupAccess, narrow.groupAccess) &&
    has(fsGroups, narrow.fsGroups) &&
    has(idmapFrom, narrow.idmapFrom ?? []) &&
    (wide.mountOptions === undefined ? narrow.mountOptions === undefined : has(wide.mountOptions, narrow.mountOptions))
  )
}

/** Two arbitrary namespaces, which represent those that a rule matches without naming them. */
const EXAMPLE_NAMESPACES = ['some-namespace', 'another-namespace']

/** Warns if a rule gives a namespace access to a source that another namespace may write. */
function* checkNamespaceOverlap(
  rule: AllowRule,
  at: number,
  writer: AllowRule,
  other: number,
  file: string,
): Generator<CheckResult> {
  // Two writing rules are reported once.
  if (writer.readOnly || (other < at && !rule.readOnly)) return
  const names = [rule, writer].flatMap(({ namespaces = [] }) => namespaces.map((glob) => glob.replaceAll('*', 'x')))
  const more = [rule, writer].flatMap(({ namespaces = [] }) => namespaces.map((glob) => glob.replaceAll('*', 'y')))
  const candidates = [...new Set([...names, ...more, ...EXAMPLE_NAMESPACES])]
  const may = ({ namespaces }: AllowRule, name: string) => namespaces?.some((glob) => matchesGlob(glob, name)) ?? true
  for (const guest of candidates.filter((name) => may(rule, name))) {
    for (const host of candidates.filter((name) => name !== guest && may(writer, name))) {
      const place = findSharedSource(rule, guest, writer, host)
      if (place === undefined) continue
      const which = other === at ? `rule ${at + 1} lets` : `rules ${at + 1} and ${other + 1} let`
      const isUnnamed = EXAMPLE_NAMESPACES.includes(guest) || EXAMPLE_NAMESPACES.includes(host)
      const who = isUnnamed
        ? "one namespace into another's"
        : `namespace ${quoteValue(guest)} into that of ${quoteValue(host)}`
      yield createWarningResult(
        `${which} ${who}: ${place}`,
        `write ${NAMESPACE_PLACEHOLDER} as a directory of the source, or name one namespace, in "allow" of ${file}`,
      )
      return
    }
  }
}

/** Returns a source that both rules allow. */
function findSharedSource(one: AllowRule, first: string, other: AllowRule, second: string): string | undefined {
  const expandSources = ({ sources, fsTypes = DEFAULT_ALLOWED_FS_TYPES }: AllowRule, namespace: string) =>
    !fsTypes.some(hasVolumeTypeSource)
      ? []
      : (sources ?? ['/*']).map((entry) => entry.replaceAll(NAMESPACE_PLACEHOLDER, namespace))
  const others = expandSources(other, second)
  return expandSources(one, first).find((entry) => others.some((there) => areSourceEntriesOverlapping(entry, there)))
}
