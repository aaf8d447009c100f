import { quoted, Refusal } from '../../refusal/refusal.ts'
import { readArguments } from './arguments.ts'
import { type Command, isVerb, type NodeCommand, shown, VERB_NAMES, type Verb, verbForm } from './index.ts'
import { noVerb } from './suggest.ts'

/** What a command is about, for the log. */
export function subjectOf(command: NodeCommand): { directory?: string; volume?: string } {
  if ('directory' in command) return { directory: command.directory }
  return 'target' in command ? command.target : {}
}

/** Whether it may change something; others leave no line in the log. */
export function isChanging(command: NodeCommand): boolean {
  return !shown(command).isLooking && !('isDry' in command && command.isDry)
}

/** Whether a first argument is a person's. No verb may be one that kubelet calls, or has ever called. */
export function isByHand(word: string): boolean {
  return isVerb(word) || ['--help', '-h', '--version'].includes(word)
}

/**
 * Reads an operator's arguments, the verb first.
 * @param workingDirectory what a relative DIR starts from; called only for one
 * @throws {Refusal} with every fault, for a usage error
 */
export function parseCommand(argv: readonly string[], workingDirectory: () => string): Command {
  const [word = '', ...args] = argv
  if (word === '--help' || word === '-h') return { verb: 'help', topic: undefined, isManual: false }
  if (word === '') throw new Refusal('there is no verb: see "modekeep help"')
  const verb = word === '--version' ? 'version' : word
  if (!isVerb(verb)) throw new Refusal(noVerb(verb, VERB_NAMES))
  const { given, words, faults } = readArguments(verb, args)
  if (given.has('help') && faults.length === 0) return { verb: 'help', topic: verb, isManual: false }
  const form = verbForm(verb)
  if (form.operands === '') refuseWords(verb, words, faults)
  const command = form.read({ given, words, faults, workingDirectory, verbs: VERB_NAMES })
  if (faults.length > 0) throw new Refusal(faults)
  return command
}

function refuseWords(verb: Verb, [word]: readonly string[], faults: string[]): void {
  if (word === undefined) return
  faults.push(
    verb === 'version'
      ? `version takes no argument, got ${quoted(word)}: leave it out`
      : `${verb} is about the whole node, got ${quoted(word)}: leave it out`,
  )
}
