import { contradictingFlags, FLAGS, ORDINARY_FLAGS } from '../mount-table/flags.ts'
import type { NodeConfig } from '../protocol/defaults.ts'
import { show } from '../protocol/refusal.ts'

/** The rule of an option the file system itself takes: `size` in `size=64m`. */
export interface OptionRule {
  pattern: RegExp
  example: string
}

/** Faults of a mountOptions list: options this kind does not have or this node does not allow, bad values, contradictions. */
export function optionFaults(
  kind: string,
  options: readonly string[],
  own: ReadonlyMap<string, OptionRule>,
  config: NodeConfig,
): string[] {
  const allowed = Object.hasOwn(config.allowedMountOptions, kind)
    ? (config.allowedMountOptions[kind] ?? [])
    : [...ORDINARY_FLAGS, ...own.keys()]
  const faults = contradictingFlags(options).map(
    ([one, other]) => `option "mountOptions" has both ${one} and ${other}: keep one`,
  )
  for (const option of options) {
    const name = option.split('=', 1)[0] ?? ''
    const rule = own.get(name)
    if (!allowed.includes(name) || !(rule || FLAGS.has(name))) {
      faults.push(
        `option "mountOptions" has ${show(option)}, not allowed for ${kind} on this node: use ${allowed.join(', ')}, or have it added to allowedMountOptions.${kind} of the node's modekeep configuration`,
      )
    } else if (rule ? !rule.pattern.test(option) : option !== name) {
      faults.push(
        `option "mountOptions" has ${show(option)}: write ${rule ? `it like ${rule.example}` : `${name} without a value`}`,
      )
    }
  }
  return faults
}

/** The options that are the file system's own, not flags of the mount. */
export function ownOptions(options: readonly string[]): string[] {
  return options.filter((option) => !FLAGS.has(option))
}
