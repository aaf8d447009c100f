import { quoted } from '../../refusal/refusal.ts'
import { type Arguments, JSON_TEXT, type VerbForm } from './form.ts'
import { noVerb } from './suggest.ts'

/** @property topic a verb; undefined: the overview, or with `isManual` the man page */
interface HelpCommand {
  verb: 'help'
  topic: string | undefined
  isManual: boolean
}

export const help: VerbForm<HelpCommand> = {
  operands: '[VERB]',
  summary: "print this text, or a verb's help",
  text: ["Prints an overview, or a verb's own help, as VERB --help does."],
  options: { man: 'print all help as a man page, roff on stdout', json: JSON_TEXT },
  completes: 'verbs',
  examples: ['modekeep help restore', 'modekeep help --man > /usr/local/share/man/man8/modekeep.8'],
  read: (args) => ({ verb: 'help', topic: topicOf(args), isManual: args.given.has('man') }),
}

function topicOf({ words: [word, second], given, faults, verbs }: Arguments): string | undefined {
  if (word === undefined) return undefined
  if (second !== undefined) faults.push(`help is about one verb, got also ${quoted(second)}: leave it out`)
  if (given.has('man')) faults.push(`--man is a page about all verbs, got ${quoted(word)}: leave one out`)
  if (verbs.includes(word)) return word
  faults.push(noVerb(word, verbs))
  return undefined
}
