import { FLAGS, findContradictingFlags, ORDINARY_FLAGS } from '../../mount-table/mount-flags.ts'
import { quoted } from '../../refusal/refusal.ts'
import type { OptionNaming } from '../../request/allow.ts'
import type { MountRequest } from '../../request/mount-request.ts'
import { formatSource } from '../../request/source.ts'

/** The rule of an option the file system itself takes: `size` in `size=64m`. */
export interface OptionRule {
  matches(option: string): boolean
  /** Several with ' or ' between them. */
  example: string
  /** Values that a rule of the node has to name in full. */
  onlyNamed?: readonly string[]
  /** Only where a rule of the node names it. */
  isRisky?: true
}

/** By an option's name or by all of it: its equal, or why it has none. */
export type OptionRemedies = ReadonlyMap<string, string>

const NO_REMEDIES: OptionRemedies = new Map()

function findRemedy(remedies: OptionRemedies, option: string): string[] {
  const remedy = remedies.get(option) ?? remedies.get(parseOptionName(option))
  return remedy === undefined ? [] : [remedy]
}

/** Options of fstab(5), which say nothing to a file system. */
export const FSTAB_REMEDIES: readonly (readonly [string, string])[] = [
  ['_netdev', 'leave _netdev out, as it tells the boot of a node when to mount'],
  ['nofail', 'leave nofail out, as it tells the boot of a node what to do without the mount'],
]

/** By name. */
export type OptionRules = ReadonlyMap<string, OptionRule>

type RuleEntry = readonly [name: string, rule: OptionRule]

/** The rules of a kind: made when a volume of it is asked for. */
export function createRules(make: () => Iterable<RuleEntry>): () => OptionRules {
  let made: OptionRules | undefined
  return () => {
    made ??= new Map(make())
    return made
  }
}

export const NUMBER = /0|[1-9][0-9]{0,9}/

/** An option with a value: its name is its example's. */
export function rule(example: string, value: RegExp): RuleEntry {
  const name = parseOptionName(example)
  // Made when one is asked about: most calls are about none of them.
  const pattern = () => new RegExp(`^${name}=(?:${value.source})$`, value.flags)
  return [name, { matches: (option) => pattern().test(option), example }]
}

/** Options without a value. */
export function words(...names: string[]): RuleEntry[] {
  return names.map((name) => [name, { matches: (option) => option === name, example: name }])
}

/** Options with a decimal number of at most ten digits. */
export function numbers(examples: Readonly<Record<string, number>>): RuleEntry[] {
  return Object.entries(examples).map(([name, example]) => rule(`${name}=${example}`, NUMBER))
}

/** `sec`, of which Kerberos, which uses the identity of this node, is for the node's administrator to allow. */
export function security(...values: string[]): RuleEntry[] {
  return withNamed(['krb5', 'krb5i', 'krb5p'], choices({ sec: values }))
}

/** Options of which a rule of the node has to name some values in full. */
export function withNamed(onlyNamed: readonly string[], entries: RuleEntry[]): RuleEntry[] {
  return entries.map(([name, plain]) => [name, { ...plain, onlyNamed }])
}

/** Options with one of a few values. */
export function choices(values: Readonly<Record<string, readonly string[]>>): RuleEntry[] {
  return Object.entries(values).map(([name, all]) => {
    const choice = all.map((value) => `${name}=${value}`)
    return [name, { matches: (option) => choice.includes(option), example: choice.join(' or ') }]
  })
}

export function parseOptionName(option: string): string {
  return option.split('=', 1)[0] ?? ''
}

/** How far a rule of the node has to name an option of a kind. */
export function findRequiredNaming(rules: OptionRules, option: string): OptionNaming {
  const name = parseOptionName(option)
  const own = rules.get(name)
  if (own?.onlyNamed?.includes(option.slice(name.length + 1))) return 'value'
  const isOrdinary = own === undefined ? ORDINARY_FLAGS.includes(name) : !own.isRisky
  return isOrdinary ? 'none' : 'name'
}

/**
 * Whether a kind could ever have an option that a rule of the node names, by its name alone or with a value.
 * @returns true; or how the option is written, where the kind has one of that name; or false
 */
export function isTaken(own: OptionRules, option: string): true | string | false {
  const name = parseOptionName(option)
  const known = own.get(name)
  if (known !== undefined) return option === name || known.matches(option) || known.example
  return FLAGS.has(name) && (option === name || name)
}

/**
 * Faults of a mountOptions list in itself, whatever the node's rules allow: options that the kind lacks, bad values,
 * contradictions.
 * @param takesAny what is not known is passed on: a rule has to name it
 * @param remedies what to do instead of options that other tools take
 */
export function findOptionFaults(
  kind: string,
  options: readonly string[],
  own: OptionRules,
  takesAny = false,
  remedies: OptionRemedies = NO_REMEDIES,
): string[] {
  const remediesFor = (some: readonly string[]) => [...new Set(some.flatMap((option) => findRemedy(remedies, option)))]
  const { unknown, known } = Object.groupBy(options, (option) => {
    const name = parseOptionName(option)
    if (own.has(name) || FLAGS.has(name)) return 'known'
    return takesAny && /^\P{Cc}+$/u.test(option) ? 'passed' : 'unknown'
  })
  const faults = findContradictingFlags(options).map(
    ([one, other]) => `option "mountOptions" has both ${one} and ${other}: keep one`,
  )
  if (unknown) {
    const taken = [...FLAGS.keys(), ...own.keys()].join(', ')
    const more = remediesFor(unknown).map((remedy) => `; ${remedy}`)
    faults.push(`option "mountOptions" has ${quoted(unknown)}: ${kind} takes ${taken}${more.join('')}`)
  }
  const seen = new Set<string>()
  for (const option of known ?? []) {
    const name = parseOptionName(option)
    const { matches, example } = own.get(name) ?? {}
    if (matches ? !matches(option) : option !== name) {
      faults.push(
        `option "mountOptions" has ${quoted(option)}: write ${example ? `it like ${example}` : `${name} without a value`}${remediesFor([option]).map((remedy) => `; ${remedy}`)}`,
      )
    }
    if (matches && seen.has(name)) faults.push(`option "mountOptions" has ${name} twice: keep one`)
    seen.add(name)
  }
  return faults
}

/** Faults of a request for a kind whose volumes are new and empty with each mount. */
export function findFreshFaults(kind: string, { source, subPath }: Pick<MountRequest, 'source' | 'subPath'>): string[] {
  const faults: string[] = []
  const text = formatSource(source)
  if (text !== undefined && text !== kind) {
    faults.push(`option "source" is ${quoted(text)}: a ${kind} has none, leave it out`)
  }
  if (subPath !== undefined) {
    faults.push(`option "subPath" is ${quoted(subPath)}: a ${kind} is new and empty, leave it out`)
  }
  return faults
}

/** The options that are the file system's own, not flags of the mount. */
export function filterOwnOptions(options: readonly string[]): string[] {
  return options.filter((option) => !FLAGS.has(option))
}
