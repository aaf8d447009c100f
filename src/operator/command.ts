import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import type { ByHandOrder } from '../apply/by-hand.ts'
import { parseGroup } from '../protocol/fs-group.ts'
import { Refusal, show } from '../protocol/refusal.ts'

export type VolumeCommand =
  | { verb: 'plan' | 'apply'; directory: string; order: ByHandOrder }
  | { verb: 'restore'; directory: string }

export type Command = { verb: 'help'; topic: string | undefined } | { verb: 'version' } | VolumeCommand

type VolumeVerb = VolumeCommand['verb']

const VERBS: Readonly<Record<VolumeVerb, readonly string[]>> = {
  plan: ['fsgroup', 'group-access', 'policy', 'json', 'help'],
  apply: ['fsgroup', 'group-access', 'policy', 'json', 'help'],
  restore: ['json', 'help'],
}

const OPTIONS = {
  fsgroup: { type: 'string' },
  'group-access': { type: 'string' },
  policy: { type: 'string' },
  json: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const

/**
 * Reads an operator's arguments, the verb first.
 * @param workingDirectory what a relative DIR starts from; called only for one
 * @throws {Refusal} with every fault, for a usage error
 */
export function parseCommand(argv: readonly string[], workingDirectory: () => string): Command {
  const [verb = '', ...args] = argv
  switch (verb) {
    case 'help':
    case '--help':
    case '-h':
      return { verb: 'help', topic: args.find(isVolumeVerb) }
    case 'version':
    case '--version':
      return { verb: 'version' }
    default:
      if (!isVolumeVerb(verb)) throw new Refusal(`there is no verb ${show(verb)}: see "modekeep help"`)
      return volumeCommand(verb, args, workingDirectory)
  }
}

function isVolumeVerb(verb: string): verb is VolumeVerb {
  return Object.hasOwn(VERBS, verb)
}

function volumeCommand(verb: VolumeVerb, args: string[], workingDirectory: () => string): Command {
  const { tokens } = parseArgs({ args, options: OPTIONS, strict: false, allowPositionals: true, tokens: true })
  const given = new Map<string, string | undefined>()
  const directories: string[] = []
  const faults: string[] = []
  for (const token of tokens) {
    if (token.kind === 'positional') directories.push(token.value)
    if (token.kind !== 'option') continue
    const { name, rawName, value } = token
    if (!VERBS[verb].includes(name)) {
      const known = VERBS[verb].map((option) => `--${option}`).join(', ')
      faults.push(`${verb} has no option ${show(rawName)}: it takes ${known}`)
    } else if (given.has(name)) faults.push(`${rawName} is given twice: keep one`)
    else faults.push(...valueFaults(name as keyof typeof OPTIONS, value))
    given.set(name, value)
  }
  if (given.has('help') && faults.length === 0) return { verb: 'help', topic: verb }
  const directory = directoryOf(verb, directories, workingDirectory, faults)
  if (verb !== 'restore' && !given.has('fsgroup'))
    faults.push('--fsgroup is missing: name the group, as in --fsgroup 2000')
  if (faults.length > 0) throw new Refusal(faults)
  if (verb === 'restore') return { verb, directory }
  const order: ByHandOrder = {
    group: Number(given.get('fsgroup')),
    access: given.get('group-access') === 'grant' ? 'grant' : 'keep',
    policy: given.get('policy') === 'Always' ? 'Always' : 'OnRootMismatch',
  }
  return { verb, directory, order }
}

const CHOICES: Readonly<Record<string, readonly string[]>> = {
  'group-access': ['keep', 'grant'],
  policy: ['OnRootMismatch', 'Always'],
}

function valueFaults(name: keyof typeof OPTIONS, value: string | undefined): string[] {
  if (OPTIONS[name].type === 'boolean') return value === undefined ? [] : [`--${name} takes no value: write it alone`]
  const choices = CHOICES[name]
  if (value === undefined) {
    return [`--${name} has no value: write ${choices ? choices.join(' or ') : 'a group, such as 2000,'} after it`]
  }
  if (choices) return choices.includes(value) ? [] : [`--${name} is ${show(value)}: use ${choices.join(' or ')}`]
  return typeof parseGroup(value) === 'number'
    ? []
    : [`--${name} is ${show(value)}: a group is a decimal number from 0 to 4294967294, without sign or leading zeros`]
}

function directoryOf(
  verb: VolumeVerb,
  directories: readonly string[],
  workingDirectory: () => string,
  faults: string[],
): string {
  const [directory = '', ...more] = directories
  if (directory === '' || more.length > 0) {
    faults.push(`${verb} takes one directory, got ${directory === '' ? 'none' : show(directories)}: name one`)
  } else if (/[\0\ufffd]/.test(directory)) {
    // Node decodes argv as UTF-8: the real name is lost.
    faults.push(`directory ${show(directory)} is not valid UTF-8: reach it by another name, such as a bind mount`)
  } else if (/(^|\/)(?!\.\.?(\/|$))[^/]+(\/+\.)*\/+\.\.(\/|$)/.test(directory)) {
    // Behind a symbolic link, ".." is not where the text says.
    faults.push(`directory ${show(directory)} goes down and up again: write it without ".."`)
  }
  if (faults.length > 0) return ''
  return directory.startsWith('/') ? resolve(directory) : resolve(workingDirectory(), directory)
}
