import type { listFaultExplanations } from '../commands/about.ts'
import {
  getVerbForm,
  isOperatorVerb,
  KUBELET_VERBS,
  OPERATOR_VERB_NAMES,
  type OperatorVerb,
} from '../commands/index.ts'
import { CLI_OPTIONS, listOptionSpellings, type OptionName } from '../commands/options.ts'
import { wrapText } from '../output/output.ts'

export const MODEKEEP_PURPOSE =
  "gives a directory's files to a group without damaging them, and puts back what it changed"

/** Exit statuses of all verbs, for help and the man page. */
export const EXIT_STATUSES = Object.entries({
  0: 'done',
  1: 'failed or refused',
  2: 'the arguments are wrong',
  130: 'interrupted (Ctrl-C)',
})

const DEFAULT_HELP_WIDTH = 80
const VERB_MEANING_COLUMN = 36
const OPTION_MEANING_COLUMN = 25
/** On a narrow terminal the meaning of a term is on the lines below it. */
const NARROW_HELP_LAYOUT = { below: 70, column: 6 }

/**
 * @param topic undefined: the overview
 * @param width in columns; a longer word is not broken, so that it can be copied
 */
export function formatHelp(topic: string | undefined, width = DEFAULT_HELP_WIDTH): string {
  const lines = topic !== undefined && isOperatorVerb(topic) ? formatVerbHelp(topic, width) : formatHelpOverview(width)
  return lines.map((line) => `${line}\n`).join('')
}

/** Formats the usage line of a verb. */
export function formatVerbUsage(verb: OperatorVerb): string {
  const { needs = '', options } = getVerbForm(verb)
  const optional = Object.keys(options).filter((name) => name !== 'help' && !needs.includes(`--${name}`))
  return `${formatRequiredArguments(verb)} ${optional.length > 1 ? '[options]' : `[--${optional[0]}]`}`
}

function formatRequiredArguments(verb: OperatorVerb): string {
  const { operands = '', needs = '' } = getVerbForm(verb)
  return ['modekeep', verb, operands, needs].filter((part) => part !== '').join(' ')
}

/** Lists a verb's options for help and the man page: `-f, --follow` with the value's placeholder, and the description. */
export function listOptionDescriptions(verb: OperatorVerb): [term: string, text: string][] {
  return (Object.entries(getVerbForm(verb).options) as [OptionName, string][]).map(([name, text]) => {
    const { value } = CLI_OPTIONS[name]
    return [`${listOptionSpellings(name).join(', ')}${value ? ` ${value}` : ''}`, text]
  })
}

function formatHelpOverview(width: number): string[] {
  return [
    ...wrapText(`modekeep ${MODEKEEP_PURPOSE}.`, width),
    '',
    'By hand, as root:',
    ...OPERATOR_VERB_NAMES.flatMap((verb) =>
      formatHelpEntry(formatRequiredArguments(verb), getVerbForm(verb).summary, VERB_MEANING_COLUMN, width),
    ),
    '',
    ...wrapText(`For kubelet: ${KUBELET_VERBS.join(', ')}.`, width),
    '',
    ...wrapText(`Exit status: ${EXIT_STATUSES.map((status) => status.join(' ')).join(', ')}.`, width),
    '"modekeep VERB --help" has the rest.',
    '',
    'Example:',
    ...formatVerbExample('modekeep plan /srv/volumes/data --fsgroup 2000', width),
  ]
}

/** Verbs of the introduction, in the order of the help. */
const EVERYDAY_VERBS = [
  'plan',
  'apply',
  'restore',
  'journal',
  'status',
  'heal',
  'doctor',
  'logs',
  'explain',
  'gc',
  'migrate',
] as const satisfies OperatorVerb[]

/** Formats the output of modekeep without arguments. @param mounted summary of this node's mounts, in one line */
export function formatHelpIntroduction(version: string, mounted: string): string {
  const commands = EVERYDAY_VERBS.flatMap((verb) =>
    formatHelpEntry(formatRequiredArguments(verb), getVerbForm(verb).summary, VERB_MEANING_COLUMN, DEFAULT_HELP_WIDTH),
  )
  const head = [`modekeep ${version} ${MODEKEEP_PURPOSE}.`, `Mounts: ${mounted}.`].flatMap((text) =>
    wrapText(text, DEFAULT_HELP_WIDTH),
  )
  const foot = '"modekeep help" has all commands, "modekeep VERB --help" what each of them takes.'
  return [...head, '', ...commands, '', ...wrapText(foot, DEFAULT_HELP_WIDTH)].map((line) => `${line}\n`).join('')
}

function formatVerbHelp(verb: OperatorVerb, width: number): string[] {
  const { text, examples, failure } = getVerbForm(verb)
  return [
    ...wrapText(formatVerbUsage(verb), width),
    '',
    ...text.flatMap((paragraph) => [...wrapText(paragraph, width), '']),
    ...listOptionDescriptions(verb).flatMap(([term, what]) =>
      formatHelpEntry(term, what, OPTION_MEANING_COLUMN, width),
    ),
    '',
    ...(failure ? [...wrapText(`Exit status 1 also where ${failure}.`, width), ''] : []),
    examples.length > 1 ? 'Examples:' : 'Example:',
    ...examples.flatMap((line) => formatVerbExample(line, width)),
  ]
}

/** Wraps an example with backslashes, so that a shell reads its lines as one command. */
function formatVerbExample(command: string, width: number): string[] {
  const lines = wrapText(command, width - 8)
  return lines.map((line, index) => `${index === 0 ? '  ' : '      '}${line}${index < lines.length - 1 ? ' \\' : ''}`)
}

/** Formats one entry in full, or a list of all codes. */
export function formatFaultExplanations(
  entries: ReturnType<typeof listFaultExplanations>,
  width = DEFAULT_HELP_WIDTH,
): string {
  const [entry] = entries
  const lines =
    entry !== undefined && entries.length === 1
      ? formatFaultExplanation(entry, width)
      : [...Map.groupBy(entries, ({ section }) => section)].flatMap(([section, found]) => [
          section,
          ...found.flatMap(({ code, meaning }) => formatHelpEntry(code, meaning, OPTION_MEANING_COLUMN, width)),
        ])
  return lines.map((line) => `${line}\n`).join('')
}

function formatFaultExplanation(entry: ReturnType<typeof listFaultExplanations>[number], width: number): string[] {
  const { code, meaning, cause, remedy, page } = entry
  const paragraphs = [`${code}: ${meaning}`, cause, `Remedy: ${remedy}`, page && `See ${page}`]
  return paragraphs
    .filter((text) => text !== null)
    .flatMap((text, at) => [...(at > 0 ? [''] : []), ...wrapText(text, width)])
}

/** Formats a term and its meaning in two columns. */
function formatHelpEntry(term: string, text: string, wide: number, width: number): string[] {
  const column = width < NARROW_HELP_LAYOUT.below ? NARROW_HELP_LAYOUT.column : wide
  const [first = '', ...more] = wrapText(text, width - column).map((line) => ' '.repeat(column) + line)
  const isLong = term.length + 3 > column
  return isLong ? [`  ${term}`, first, ...more] : [`  ${term}`.padEnd(column) + first.trimStart(), ...more]
}

/**
 * Formats the man page, man(7), from the same tables as the help.
 * @param version shown in the footer. There is no date, so that one version always has the same text.
 */
export function formatManualPage(version: string): string {
  return `${[
    `.TH MODEKEEP 8 "" "modekeep ${version}" "System administration"`,
    // No hyphenation and left-aligned, so that words appear as they are typed.
    '.nh',
    '.ad l',
    '.SH NAME',
    `modekeep \\- ${escapeRoff(MODEKEEP_PURPOSE)}`,
    '.SH SYNOPSIS',
    '.nf',
    ...OPERATOR_VERB_NAMES.map((verb) => escapeRoff(formatVerbUsage(verb))),
    '.fi',
    '.SH DESCRIPTION',
    escapeRoff(
      'A Kubernetes FlexVolume driver, and commands for the administrators of its nodes. This page describes the commands; ' +
        `most need root. kubelet calls ${KUBELET_VERBS.join(', ')} and reads one JSON document as the reply.`,
    ),
    formatRoffParagraph(
      'Results are on standard output, errors on standard error. Colour and progress are shown on a terminal ' +
        'only, and no colour with NO_COLOR set. With --json a failure is a document of the kind "Error" on standard output.',
    ),
    '.SH COMMANDS',
    ...OPERATOR_VERB_NAMES.flatMap(formatVerbSection),
    '.SH EXIT STATUS',
    ...EXIT_STATUSES.flatMap(([status, meaning]) => ['.TP', `.B ${status}`, escapeRoff(meaning)]),
    '.SH ENVIRONMENT',
    ...formatRoffEntry('MODEKEEP_CONFIG', "the node's configuration, instead of /etc/modekeep/config.json"),
    ...formatRoffEntry('NO_COLOR', 'no colour, if set to anything'),
    '.SH FILES',
    ...formatRoffEntry('/etc/modekeep/config.json', "the node's configuration"),
    ...formatRoffEntry('/var/lib/modekeep', 'records of mounts, and of every changed file as it was before'),
    ...formatRoffEntry('/var/log/modekeep/modekeep.log', 'the log, shown by modekeep logs'),
  ].join('\n')}\n`
}

function formatVerbSection(verb: OperatorVerb): string[] {
  const { text, examples, failure } = getVerbForm(verb)
  return [
    `.SS ${escapeRoff(formatVerbUsage(verb))}`,
    ...text.map((words, index) => (index === 0 ? escapeRoff(words) : formatRoffParagraph(words))),
    ...listOptionDescriptions(verb).flatMap(([term, what]) => formatRoffEntry(term, what)),
    ...(failure ? [formatRoffParagraph(`Exit status 1 also where ${failure}.`)] : []),
    formatRoffParagraph(examples.length > 1 ? 'Examples:' : 'Example:'),
    '.RS 4',
    '.nf',
    ...examples.map(escapeRoff),
    '.fi',
    '.RE',
  ]
}

function formatRoffEntry(term: string, text: string): string[] {
  return ['.TP', `.B ${escapeRoff(term)}`, escapeRoff(text)]
}

function formatRoffParagraph(text: string): string {
  return `.PP\n${escapeRoff(text)}`
}

/** Escapes roff's control characters: backslashes, leading dots and quotes; also hyphens, so that they can be copied. */
function escapeRoff(text: string): string {
  return text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replace(/^(?=[.'])/, '\\&')
    .replaceAll('"', '\\(dq')
}
