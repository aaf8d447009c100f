import type { RequiredOptionNaming } from '../../config/allow.ts'
import type { MountRequest } from '../../config/mount-request.ts'
import { formatSource } from '../../config/source.ts'
import { createOptionFault, type Fault } from '../../errors/fault.ts'
import { quoteValue } from '../../errors/refusal.ts'
import {
  findContradictingMountOptions,
  MOUNT_OPTIONS_BY_NAME,
  ORDINARY_MOUNT_OPTIONS,
} from '../../kernel/mount-table/mount-flags.ts'

export const createMountOptionsFault = (reason: string, remedy: string): Fault =>
  createOptionFault('mount-options', 'mountOptions', reason, remedy)

export const createSubPathFault = (subPath: string, remedy: string): Fault =>
  createOptionFault('sub-path-unsupported', 'subPath', `is ${quoteValue(subPath)}`, remedy)

/** The rule of an option of the file system itself: `size` in `size=64m`. */
export interface OptionRule {
  matches(option: string): boolean
  /** Several examples are joined by ' or '. */
  example: string
  /** Values that a rule of the node must name in full. */
  onlyNamed?: readonly string[]
  /** The option is permitted only if a rule of the node names it. */
  isRisky?: true
}

/** Maps an option, or its name, to its equivalent or to the reason why there is none. */
export type OptionRemedies = ReadonlyMap<string, string>

const NO_OPTION_REMEDIES: OptionRemedies = new Map()

/** Options of fstab(5), which have no meaning for a file system. */
export const FSTAB_OPTION_REMEDIES: readonly (readonly [string, string])[] = [
  ['_netdev', 'leave _netdev out, as it tells the boot of a node when to mount'],
  ['nofail', 'leave nofail out, as it tells the boot of a node what to do without the mount'],
]

export type OptionRules = ReadonlyMap<string, OptionRule>

type OptionRuleEntry = readonly [name: string, rule: OptionRule]

/** Creates the rules of a kind at their first use. */
export function createLazyOptionRules(make: () => Iterable<OptionRuleEntry>): () => OptionRules {
  let made: OptionRules | undefined
  return () => {
    made ??= new Map(make())
    return made
  }
}

export const DECIMAL_NUMBER_FORM = /0|[1-9][0-9]{0,9}/

/** Creates the rule of an option with a value. The example contains the name. */
export function createValueRule(example: string, value: RegExp): OptionRuleEntry {
  const name = parseOptionName(example)
  // The pattern is compiled when needed, because most calls use none of them.
  const pattern = () => new RegExp(`^${name}=(?:${value.source})$`, value.flags)
  return [name, { matches: (option) => pattern().test(option), example }]
}

export function createWordRules(...names: string[]): OptionRuleEntry[] {
  return names.map((name) => [name, { matches: (option) => option === name, example: name }])
}

/** Options with a decimal number of at most ten digits. */
export function createNumberRules(examples: Readonly<Record<string, number>>): OptionRuleEntry[] {
  return Object.entries(examples).map(([name, example]) => createValueRule(`${name}=${example}`, DECIMAL_NUMBER_FORM))
}

/** Creates the rule of `sec`. Kerberos uses this node's identity, so a rule of the administrator must name it. */
export function createSecurityRules(...values: string[]): OptionRuleEntry[] {
  return markValuesThatNeedNaming(['krb5', 'krb5i', 'krb5p'], createChoiceRules({ sec: values }))
}

/** Marks values that a rule of the node must name in full. */
export function markValuesThatNeedNaming(onlyNamed: readonly string[], entries: OptionRuleEntry[]): OptionRuleEntry[] {
  return entries.map(([name, plain]) => [name, { ...plain, onlyNamed }])
}

export function createChoiceRules(values: Readonly<Record<string, readonly string[]>>): OptionRuleEntry[] {
  return Object.entries(values).map(([name, all]) => {
    const choice = all.map((value) => `${name}=${value}`)
    return [name, { matches: (option) => choice.includes(option), example: choice.join(' or ') }]
  })
}

export function parseOptionName(option: string): string {
  return option.split('=', 1)[0] ?? ''
}

/** Finds whether a rule of the node must name an option by its name, with its value, or not at all. */
export function findRequiredOptionNaming(rules: OptionRules, option: string): RequiredOptionNaming {
  const name = parseOptionName(option)
  const own = rules.get(name)
  if (own?.onlyNamed?.includes(option.slice(name.length + 1))) return 'value'
  const isOrdinary = own === undefined ? ORDINARY_MOUNT_OPTIONS.includes(name) : !own.isRisky
  return isOrdinary ? 'none' : 'name'
}

/**
 * Whether a kind takes an option that a rule of the node names, by its name or with a value.
 * @returns true; or an example, if the kind has an option of that name; or false
 */
export function isOptionAcceptedByKind(own: OptionRules, option: string): true | string | false {
  const name = parseOptionName(option)
  const known = own.get(name)
  if (known !== undefined) return option === name || known.matches(option) || known.example
  return MOUNT_OPTIONS_BY_NAME.has(name) && (option === name || name)
}

/**
 * Finds the faults of a mountOptions list that do not depend on the node's rules: options that the kind lacks, invalid
 * values, contradictions.
 * @param takesAny passes unlisted options on: a rule must name them
 * @param remedies replacements for options that other tools take
 */
export function findOptionFaults(
  kind: string,
  options: readonly string[],
  own: OptionRules,
  takesAny = false,
  remedies: OptionRemedies = NO_OPTION_REMEDIES,
): Fault[] {
  const findRemedy = (option: string) => remedies.get(option) ?? remedies.get(parseOptionName(option)) ?? []
  const formatRemedies = (some: readonly string[]) =>
    [...new Set(some.flatMap(findRemedy))].map((remedy) => `; ${remedy}`).join('')
  const { unknown, known } = Object.groupBy(options, (option) => {
    const name = parseOptionName(option)
    if (own.has(name) || MOUNT_OPTIONS_BY_NAME.has(name)) return 'known'
    return takesAny && /^\P{Cc}+$/u.test(option) ? 'passed' : 'unknown'
  })
  const faults = findContradictingMountOptions(options).map(([one, other]) =>
    createMountOptionsFault(`has both ${one} and ${other}`, 'keep one'),
  )
  if (unknown) {
    const taken = [...MOUNT_OPTIONS_BY_NAME.keys(), ...own.keys()].join(', ')
    faults.push(
      createMountOptionsFault(`has ${quoteValue(unknown)}`, `${kind} takes ${taken}${formatRemedies(unknown)}`),
    )
  }
  const seen = new Set<string>()
  for (const option of known ?? []) {
    const name = parseOptionName(option)
    const { matches, example } = own.get(name) ?? {}
    if (matches ? !matches(option) : option !== name) {
      faults.push(
        createMountOptionsFault(
          `has ${quoteValue(option)}`,
          `write ${example ? `it like ${example}` : `${name} without a value`}${formatRemedies([option])}`,
        ),
      )
    }
    if (matches && seen.has(name)) faults.push(createMountOptionsFault(`has ${name} twice`, 'keep one'))
    seen.add(name)
  }
  return faults
}

/** Finds the faults of a request for a kind whose volumes are new and empty with each mount. */
export function findFreshVolumeFaults(
  kind: string,
  { source, subPath }: Pick<MountRequest, 'source' | 'subPath'>,
): Fault[] {
  const faults: Fault[] = []
  const text = formatSource(source)
  if (text !== undefined && text !== kind) {
    faults.push(
      createOptionFault('source-invalid', 'source', `is ${quoteValue(text)}`, `a ${kind} has none, leave it out`),
    )
  }
  if (subPath !== undefined) {
    faults.push(createSubPathFault(subPath, `a ${kind} is new and empty, leave it out`))
  }
  return faults
}

/** Returns the file system's own options, without flags of the mount. */
export function filterFileSystemOptions(options: readonly string[]): string[] {
  return options.filter((option) => !MOUNT_OPTIONS_BY_NAME.has(option))
}
