import { contradictingFlags, FLAGS, ORDINARY_FLAGS } from '../../mount-table/flags.ts'
import { quoted } from '../../refusal/refusal.ts'
import type { NodeConfig } from '../../request/defaults.ts'

/** The rule of an option the file system itself takes: `size` in `size=64m`. */
export interface OptionRule {
  pattern: RegExp
  example: string
  /** Values that the node's configuration has to name in full, and why, as a clause. */
  onlyNamed?: { values: readonly string[]; why: string }
}

/** By name. */
export type OptionRules = ReadonlyMap<string, OptionRule>

/** Faults of a mountOptions list: options this kind does not have or this node does not allow, bad values, contradictions. */
export function optionFaults(kind: string, options: readonly string[], own: OptionRules, config: NodeConfig): string[] {
  const allowed = Object.hasOwn(config.allowedMountOptions, kind)
    ? (config.allowedMountOptions[kind] ?? [])
    : [...ORDINARY_FLAGS, ...own.keys()]
  const nameOf = (option: string) => option.split('=', 1)[0] ?? ''
  const [known, unknown] = split(options, (option) => own.has(nameOf(option)) || FLAGS.has(nameOf(option)))
  const isNamed = (option: string) => allowed.includes(option)
  const [usable, denied] = split(known, (option) => allowed.includes(nameOf(option)) || isNamed(option))
  const faults = contradictingFlags(options).map(
    ([one, other]) => `option "mountOptions" has both ${one} and ${other}: keep one`,
  )
  if (unknown.length > 0) {
    faults.push(
      `option "mountOptions" has ${quoted(unknown)}: ${kind} takes ${[...FLAGS.keys(), ...own.keys()].join(', ')}`,
    )
  }
  if (denied.length > 0) {
    faults.push(
      `option "mountOptions" has ${quoted(denied)}, not allowed on this node: use ${allowed.join(', ') || 'none'}, or have it added to allowedMountOptions.${kind} of the node's modekeep configuration`,
    )
  }
  const seen = new Set<string>()
  for (const option of usable) {
    const name = nameOf(option)
    const rule = own.get(name)
    if (rule ? !rule.pattern.test(option) : option !== name) {
      faults.push(
        `option "mountOptions" has ${quoted(option)}: write ${rule ? `it like ${rule.example}` : `${name} without a value`}`,
      )
    }
    const { values = [], why } = rule?.onlyNamed ?? {}
    if (values.includes(option.slice(name.length + 1)) && !isNamed(option)) {
      faults.push(
        `option "mountOptions" has ${quoted(option)}, ${why}: leave it out, or have ${quoted(option)} added to allowedMountOptions.${kind} of the node's modekeep configuration, beside all others that its pods may use`,
      )
    }
    if (rule && seen.has(name)) faults.push(`option "mountOptions" has ${name} twice: keep one`)
    seen.add(name)
  }
  return faults
}

function split<T>(list: readonly T[], holds: (item: T) => boolean): [T[], T[]] {
  return [list.filter(holds), list.filter((item) => !holds(item))]
}

/** The options that are the file system's own, not flags of the mount. */
export function ownOptions(options: readonly string[]): string[] {
  return options.filter((option) => !FLAGS.has(option))
}
