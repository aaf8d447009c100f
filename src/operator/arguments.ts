import { parseArgs } from 'node:util'
import { parseGroup } from '../protocol/fs-group.ts'
import { show } from '../protocol/refusal.ts'

const VERBS = {
  plan: ['fsgroup', 'group-access', 'policy', 'json', 'help'],
  apply: ['fsgroup', 'group-access', 'policy', 'json', 'help'],
  restore: ['json', 'help'],
  status: ['prometheus', 'output', 'json', 'help'],
  heal: ['watch', 'dry-run', 'kubelet-subpaths', 'kubelet-dir', 'json', 'help'],
} as const satisfies Record<string, readonly string[]>

const OPTIONS = {
  watch: { type: 'boolean' },
  'dry-run': { type: 'boolean' },
  'kubelet-subpaths': { type: 'boolean' },
  'kubelet-dir': { type: 'string' },
  fsgroup: { type: 'string' },
  'group-access': { type: 'string' },
  policy: { type: 'string' },
  prometheus: { type: 'boolean' },
  output: { type: 'string' },
  json: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const

export type Verb = keyof typeof VERBS

export type Given = ReadonlyMap<string, string | undefined>

export function isVerb(verb: string): verb is Verb {
  return Object.hasOwn(VERBS, verb)
}

/**
 * Reads the words after a verb.
 * @returns options by name, other words, and every fault of form; values that are missing read undefined
 */
export function readArguments(verb: Verb, args: string[]): { given: Given; words: string[]; faults: string[] } {
  const known: readonly string[] = VERBS[verb]
  const { tokens } = parseArgs({ args, options: OPTIONS, strict: false, allowPositionals: true, tokens: true })
  const given = new Map<string, string | undefined>()
  const words: string[] = []
  const faults: string[] = []
  for (const token of tokens) {
    if (token.kind === 'positional') words.push(token.value)
    if (token.kind !== 'option') continue
    const { name, rawName, value } = token
    if (!known.includes(name)) {
      const takes = known.map((option) => `--${option}`).join(', ')
      faults.push(`${verb} has no option ${show(rawName)}: it takes ${takes}`)
    } else if (given.has(name)) faults.push(`${rawName} is given twice: keep one`)
    else faults.push(...valueFaults(name as keyof typeof OPTIONS, value))
    given.set(name, value)
  }
  return { given, words, faults }
}

const CHOICES: Readonly<Record<string, readonly string[]>> = {
  'group-access': ['keep', 'grant'],
  policy: ['OnRootMismatch', 'Always'],
}

const EXAMPLES: Readonly<Record<string, string>> = {
  fsgroup: 'a group, such as 2000,',
  'kubelet-dir': 'a path, such as /var/lib/kubelet,',
  output: 'a path, such as /var/lib/node_exporter/modekeep.prom,',
}

function valueFaults(name: keyof typeof OPTIONS, value: string | undefined): string[] {
  if (OPTIONS[name].type === 'boolean') return value === undefined ? [] : [`--${name} takes no value: write it alone`]
  const choices = CHOICES[name]
  if (value === undefined) {
    return [`--${name} has no value: write ${choices ? choices.join(' or ') : EXAMPLES[name]} after it`]
  }
  if (name === 'kubelet-dir' || name === 'output') {
    return value.startsWith('/') ? [] : [`--${name} is ${show(value)}: write an absolute path`]
  }
  if (choices) return choices.includes(value) ? [] : [`--${name} is ${show(value)}: use ${choices.join(' or ')}`]
  return typeof parseGroup(value) === 'number'
    ? []
    : [`--${name} is ${show(value)}: a group is a decimal number from 0 to 4294967294, without sign or leading zeros`]
}
