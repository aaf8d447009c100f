import { parseArgs } from 'node:util'
import { createFault, type Fault } from '../../errors/fault.ts'
import { quoteValue, Refusal } from '../../errors/refusal.ts'
import { getVerbForm, isOperatorVerb, OPERATOR_VERB_NAMES, type OperatorCommand, type OperatorVerb } from './index.ts'
import { findNearestSpelling } from './operands.ts'
import { CLI_OPTIONS, checkOptionValue, type OptionName } from './options.ts'
import type { VerbArguments } from './verb.ts'

const HELP_COMMAND = { verb: 'help', topic: undefined, isManual: false } as const

/**
 * Parses an operator's arguments, the verb first.
 * @param workingDirectory the base of a relative DIR; called only for one
 * @throws {Refusal} with every fault, for a usage error
 */
export function parseOperatorCommand(argv: readonly string[], workingDirectory: () => string): OperatorCommand {
  const [word, ...words] = argv
  if (word === undefined) return { ...HELP_COMMAND, isIntroduction: true }
  if (word === '--help' || word === '-h') return HELP_COMMAND
  const verb = word === '--version' ? 'version' : word
  if (!isOperatorVerb(verb)) throw Refusal.of('usage', ...explainUnknownVerb(verb))
  const args = { ...parseVerbArguments(verb, words), workingDirectory }
  if (args.given.has('help') && args.faults.length === 0) return { ...HELP_COMMAND, topic: verb }
  const { operands, read } = getVerbForm(verb)
  if (operands === undefined && args.words.length > 0) {
    const why = verb === 'version' ? 'takes no argument' : 'is about the whole node'
    args.refuse(`${verb} ${why}, got ${quoteValue(args.words[0])}`, 'leave it out')
  }
  const command = read(args)
  if (command.verb === 'help' && command.topic !== undefined && !isOperatorVerb(command.topic)) {
    args.refuse(...explainUnknownVerb(command.topic))
  }
  if (args.faults.length > 0) throw new Refusal(args.faults)
  return command
}

function explainUnknownVerb(word: string): [reason: string, remedy: string] {
  const meant = findNearestSpelling(word, OPERATOR_VERB_NAMES)
  return [
    `there is no verb ${quoteValue(word)}`,
    `${meant === undefined ? '' : `did you mean ${meant}? `}see "modekeep help"`,
  ]
}

/** Parses the arguments after a verb, and collects every syntax fault. */
function parseVerbArguments(verb: OperatorVerb, args: string[]): Omit<VerbArguments, 'workingDirectory'> {
  const { options } = getVerbForm(verb)
  const { tokens } = parseArgs({
    args,
    options: collectKnownOptions(options),
    strict: false,
    allowPositionals: true,
    tokens: true,
  })
  const given = new Map<string, string | undefined>()
  const words: string[] = []
  const faults: Fault[] = []
  const refuse = (reason: string, remedy?: string) => void faults.push(createFault('usage', reason, remedy))
  for (const token of tokens) {
    if (token.kind === 'positional') words.push(token.value)
    if (token.kind !== 'option') continue
    const { name, rawName, value } = token
    if (!Object.hasOwn(options, name)) refuse(...explainUnknownOption(verb, rawName, Object.keys(options)))
    else if (given.has(name)) refuse(`${rawName} is given twice`, 'keep one')
    else for (const text of checkOptionValue(name as OptionName, value)) refuse(text)
    given.set(name, value)
  }
  return { given, words, faults, refuse }
}

/** Collects the options of all verbs, so that values of foreign options are recognised. A short letter is the verb's own. */
function collectKnownOptions(own: object): typeof CLI_OPTIONS {
  const entries = Object.entries(CLI_OPTIONS).map(([name, { short, ...form }]) => {
    const isTaken = Object.keys(own).some((other) => other !== name && CLI_OPTIONS[other as OptionName].short === short)
    return [name, short === undefined || isTaken ? form : { ...form, short }]
  })
  return Object.fromEntries(entries)
}

function explainUnknownOption(
  verb: OperatorVerb,
  rawName: string,
  candidates: readonly string[],
): [reason: string, remedy: string] {
  const suggestion = findNearestSpelling(rawName.replace(/^-+/, ''), candidates)
  const takes = `takes ${candidates.map((option) => `--${option}`).join(', ')}`
  const remedy = suggestion === undefined ? `it ${takes}` : `did you mean --${suggestion}? It ${takes}`
  return [`${verb} has no option ${quoteValue(rawName)}`, remedy]
}

/** True if the output is JSON. Invalid arguments are searched too, because their error is printed in the same form. */
export function isJsonRequested(argv: readonly string[]): boolean {
  const isForm = (word: string, at: number) => word === 'json' && /^(-o|--format)$/.test(argv[at - 1] ?? '')
  return argv.includes('--json') || argv.some((word, at) => isForm(word, at) || /^(-o=?|--format=)json$/.test(word))
}
