import { quoted } from '../../errors/refusal.ts'
import type { RecordedNameKind } from '../actions/recorded-names.ts'
import type { VerbArguments, VerbForm } from './form.ts'

export interface HelpCommand {
  verb: 'help'
  topic: string | undefined
  isManual: boolean
  /** modekeep was called without arguments. */
  isIntroduction?: true
}

export const help = {
  operands: '[VERB]',
  summary: "print this text, or a verb's help",
  text: [
    "Prints an overview, or a verb's own help, as VERB --help does. modekeep alone prints the version, what is mounted " +
      'on this node, and the commands of every day.',
  ],
  options: { man: 'print all help as a man page, roff on stdout' },
  examples: [
    'modekeep help restore',
    'modekeep help --man | sudo install -D -m 644 /dev/stdin /usr/local/share/man/man8/modekeep.8',
  ],
  read({ words: [topic, second], given, faults }: VerbArguments): HelpCommand {
    const isManual = given.has('man')
    if (second !== undefined) faults.push(`help is about one verb, got also ${quoted(second)}: leave it out`)
    if (isManual && topic !== undefined) {
      faults.push(`--man is a page about all verbs, got ${quoted(topic)}: leave one out`)
    }
    return { verb: 'help', topic, isManual }
  },
} satisfies VerbForm

export const version = {
  summary: 'print the version',
  text: ['Prints the version; with --json also that of the runtime it carries.'],
  options: {},
  examples: ['modekeep version --json'],
  read: () => ({ verb: 'version' as const }),
} satisfies VerbForm

const SHELLS = ['bash', 'zsh', 'fish'] as const

export type Shell = (typeof SHELLS)[number]

/** @property offer kind of recorded names to print instead of a script */
export interface CompletionCommand {
  verb: 'completion'
  shell: Shell
  offer: RecordedNameKind | undefined
}

export const completion = {
  operands: SHELLS.join('|'),
  summary: 'print a completion script for a shell',
  text: [
    'Prints a script that completes verbs, options and their values, and, for root, pods, mounts and volumes that are on ' +
      'record. Load it in a shell, or save it where the shell looks for completion scripts.',
  ],
  options: { offer: 'in place of a script the names on record, one a line, as the scripts ask for them' },
  examples: [
    'source <(modekeep completion bash)',
    'modekeep completion bash > /etc/bash_completion.d/modekeep',
    'modekeep completion zsh > /usr/local/share/zsh/site-functions/_modekeep',
    'modekeep completion fish > /etc/fish/completions/modekeep.fish',
  ],
  read({ words, given, faults }: VerbArguments): CompletionCommand {
    const [word, ...more] = words
    const offer = given.get('offer') as RecordedNameKind | undefined
    const shell = SHELLS.find((name) => name === word)
    if (given.has('offer')) {
      if (word !== undefined) faults.push(`--offer is for no shell alone, got ${quoted(words)}: leave one out`)
    } else if (shell === undefined || more.length > 0) {
      const got = word === undefined ? 'none' : quoted(more.length > 0 ? words : word)
      faults.push(`completion takes the name of a shell, got ${got}: write bash, zsh or fish`)
    }
    return { verb: 'completion', shell: shell ?? 'bash', offer }
  },
} satisfies VerbForm
