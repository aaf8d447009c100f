import type { NodeConfig } from '../../config/defaults.ts'
import { FAULT_ENTRIES } from '../../errors/entries/index.ts'
import type { Fault } from '../../errors/fault.ts'
import { quoteValue } from '../../errors/refusal.ts'
import type { Host } from '../../kernel/host.ts'
import { isFaultyState } from '../../repair/state.ts'
import { listReadableMountRecords } from '../../state/mount-record.ts'
import type { Store } from '../../state/record-directories.ts'
import { findNearestSpelling, listRecordedVolumes } from './operands.ts'
import { readSelectedStatus } from './status.ts'
import type { StatusDocument } from './status-document.ts'
import type { VerbArguments, VerbForm } from './verb.ts'

export interface HelpCommand {
  verb: 'help'
  topic: string | undefined
  isManual: boolean
  /** modekeep was called without arguments. */
  isIntroduction?: true
}

export const helpVerb = {
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
  read({ words: [topic, second], given, refuse }: VerbArguments): HelpCommand {
    const isManual = given.has('man')
    if (second !== undefined) refuse(`help is about one verb, got also ${quoteValue(second)}`, 'leave it out')
    if (isManual && topic !== undefined) {
      refuse(`--man is a page about all verbs, got ${quoteValue(topic)}`, 'leave one out')
    }
    return { verb: 'help', topic, isManual }
  },
} satisfies VerbForm

export const versionVerb = {
  summary: 'print the version',
  text: ['Prints the version and that of the C library in the executable; with --json also that of Node.'],
  options: {},
  examples: ['modekeep version --json'],
  read: () => ({ verb: 'version' as const }),
} satisfies VerbForm

const COMPLETION_SHELLS = ['bash', 'zsh', 'fish'] as const

export type CompletionShell = (typeof COMPLETION_SHELLS)[number]

/** @property offer kind of names to print instead of a script */
export interface CompletionCommand {
  verb: 'completion'
  shell: CompletionShell
  offer: CompletionNameKind | undefined
}

export const completionVerb = {
  operands: COMPLETION_SHELLS.join('|'),
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
  read({ words, given, refuse }: VerbArguments): CompletionCommand {
    const [word, ...more] = words
    const offer = given.get('offer') as CompletionNameKind | undefined
    const shell = COMPLETION_SHELLS.find((name) => name === word)
    if (given.has('offer')) {
      if (word !== undefined) refuse(`--offer is for no shell alone, got ${quoteValue(words)}`, 'leave one out')
    } else if (shell === undefined || more.length > 0) {
      const got = word === undefined ? 'none' : quoteValue(more.length > 0 ? words : word)
      refuse(`completion takes the name of a shell, got ${got}`, 'write bash, zsh or fish')
    }
    return { verb: 'completion', shell: shell ?? 'bash', offer }
  },
} satisfies VerbForm

interface MountSummaryContext {
  isRoot: boolean
  host: Host
  isolatesWalks?: true | undefined
  readConfig(): Promise<{ config: NodeConfig; faults: readonly Fault[] }>
}

/** Summarizes the mounts of this node in one line for the overview. Commands report the details of problems. */
export async function summarizeMounts({
  isRoot,
  host,
  isolatesWalks,
  readConfig,
}: MountSummaryContext): Promise<string> {
  if (!isRoot) return 'as root this says what is mounted on this node'
  const { config, faults } = await readConfig()
  if (faults.length > 0) return 'the configuration is not valid: "modekeep doctor" says what to do'
  return formatMountSummary(
    await readSelectedStatus({ host, config, isolatesWalks, note: () => {}, warn: () => {}, progress: () => {} }),
  )
}

function formatMountSummary({ mounts, unrecorded, unreadable }: StatusDocument): string {
  const unhealthy = mounts.map(({ state }) => state).filter(isFaultyState)
  const problems = [...unhealthy, ...unrecorded.map(() => 'without a record'), ...unreadable.map(() => 'unreadable')]
  const total = mounts.length + unrecorded.length + unreadable.length
  if (total === 0) return 'none on this node'
  const counted = [...Map.groupBy(problems, (state) => state)].map(([state, of]) => `${of.length} ${state}`)
  return `${total} on this node, ${problems.length === 0 ? 'all healthy' : `${counted.join(', ')}: see "modekeep status"`}`
}

/** Kinds of names that a shell can complete: of records, and codes of faults. */
export type CompletionNameKind = RecordedNameKind | 'codes'
type RecordedNameKind = 'namespaces' | 'pods' | 'mounts' | 'volumes'

/**
 * Lists recorded names for a shell's completion. Only records are read; no mount or volume is inspected. A name with a
 * character that a shell could interpret is omitted.
 */
export function listRecordedNames(store: Store, kind: RecordedNameKind): string[] {
  return readRecordedNames(store, kind)
    .filter((name) => /^[\w@%+:,./~-]+$/.test(name))
    .sort()
}

function readRecordedNames(store: Store, kind: RecordedNameKind): string[] {
  if (kind === 'volumes') return listRecordedVolumes(store)
  const mounts = listReadableMountRecords(store)
  if (kind === 'mounts') return mounts.map(({ directory }) => directory)
  const pods = mounts.flatMap(({ pod }) => pod || [])
  return [...new Set(kind === 'pods' ? pods : pods.map((pod) => pod.replace(/\/.*/, '')))]
}

/** @property code undefined: all codes */
export interface ExplainCommand {
  verb: 'explain'
  code: string | undefined
}

export const explainVerb = {
  operands: '[CODE]',
  summary: 'explain the code at the end of a message',
  text: [
    'Prints the meaning of a code, its cause and the remedy. Messages in events end with it: [group-conflict]. Without ' +
      'CODE it lists all codes. docs/troubleshooting.md has the same entries.',
  ],
  options: {},
  examples: ['modekeep explain group-conflict', 'modekeep explain'],
  read({ words: [word, ...more], refuse }: VerbArguments): ExplainCommand {
    // A code may be copied with its brackets.
    const code = word?.replace(/^\[(.*)\]$/, '$1')
    if (more.length > 0) refuse(`explain takes one code, got also ${quoteValue(more)}`, 'name one')
    if (code !== undefined && !FAULT_ENTRIES.has(code)) {
      const nearest = findNearestSpelling(code, [...FAULT_ENTRIES.keys()])
      const remedy = `${nearest === undefined ? '' : `did you mean ${nearest}? `}"modekeep explain" lists all`
      refuse(`there is no code ${quoteValue(code)}`, remedy)
    }
    return { verb: 'explain', code }
  },
} satisfies VerbForm

/** Lists the entries of a command for its JSON document. */
export function listFaultExplanations({ code }: ExplainCommand) {
  return [...FAULT_ENTRIES]
    .filter(([name]) => code === undefined || name === code)
    .map(([name, { section, meaning, cause = null, remedy, see }]) => {
      return { code: name, section, meaning, cause, remedy, page: see === undefined ? null : `docs/${see}` }
    })
}
