import { wrapText } from '../text/wrap.ts'
import { getVerbForm, isVerb, KUBELET_VERBS, VERB_NAMES, type Verb } from '../verbs/index.ts'
import { listSpellings, OPTIONS, type OptionName } from '../verbs/options.ts'

export const PURPOSE = "gives a directory's files to a group without damaging them, and puts back what it changed"

/** Exit statuses of all verbs, for help and the man page. */
export const EXIT_STATUSES = Object.entries({
  0: 'done',
  1: 'failed or refused',
  2: 'the arguments are wrong',
  130: 'interrupted (Ctrl-C)',
})

const WIDTH = 80
const VERB_COLUMN = 36
const OPTION_COLUMN = 25
/** On a narrow terminal the meaning of a term is on the lines below it. */
const NARROW = { below: 70, column: 6 }

/**
 * @param topic undefined: the overview
 * @param width in columns; a longer word is not broken, so that it can be copied
 */
export function formatHelp(topic: string | undefined, width = WIDTH): string {
  const lines = topic !== undefined && isVerb(topic) ? formatVerbHelp(topic, width) : formatOverview(width)
  return lines.map((line) => `${line}\n`).join('')
}

/** Formats the usage line of a verb. */
export function formatUsage(verb: Verb): string {
  const { needs = '', options } = getVerbForm(verb)
  const optional = Object.keys(options).filter((name) => name !== 'help' && !needs.includes(`--${name}`))
  return `${formatRequiredArguments(verb)} ${optional.length > 1 ? '[options]' : `[--${optional[0]}]`}`
}

function formatRequiredArguments(verb: Verb): string {
  const { operands = '', needs = '' } = getVerbForm(verb)
  return ['modekeep', verb, operands, needs].filter((part) => part !== '').join(' ')
}

/** Lists a verb's options for help and the man page: `-f, --follow` with the value's placeholder, and the description. */
export function listOptionTerms(verb: Verb): [term: string, text: string][] {
  return (Object.entries(getVerbForm(verb).options) as [OptionName, string][]).map(([name, text]) => {
    const { value } = OPTIONS[name]
    return [`${listSpellings(name).join(', ')}${value ? ` ${value}` : ''}`, text]
  })
}

function formatOverview(width: number): string[] {
  return [
    ...wrapText(`modekeep ${PURPOSE}.`, width),
    '',
    'By hand, as root:',
    ...VERB_NAMES.flatMap((verb) =>
      formatEntry(formatRequiredArguments(verb), getVerbForm(verb).summary, VERB_COLUMN, width),
    ),
    '',
    ...wrapText(`For kubelet: ${KUBELET_VERBS.join(', ')}.`, width),
    '',
    ...wrapText(`Exit status: ${EXIT_STATUSES.map((status) => status.join(' ')).join(', ')}.`, width),
    '"modekeep VERB --help" has the rest.',
    '',
    'Example:',
    ...formatExample('modekeep plan /srv/volumes/data --fsgroup 2000', width),
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
  'gc',
  'migrate',
] as const satisfies Verb[]

/** Formats the output of modekeep without arguments. @param mounted summary of this node's mounts, in one line */
export function formatIntroduction(version: string, mounted: string): string {
  const commands = EVERYDAY_VERBS.flatMap((verb) =>
    formatEntry(formatRequiredArguments(verb), getVerbForm(verb).summary, VERB_COLUMN, WIDTH),
  )
  const head = [`modekeep ${version} ${PURPOSE}.`, `Mounts: ${mounted}.`].flatMap((text) => wrapText(text, WIDTH))
  const foot = '"modekeep help" has all commands, "modekeep VERB --help" what each of them takes.'
  return [...head, '', ...commands, '', ...wrapText(foot, WIDTH)].map((line) => `${line}\n`).join('')
}

function formatVerbHelp(verb: Verb, width: number): string[] {
  const { text, examples, failure } = getVerbForm(verb)
  return [
    ...wrapText(formatUsage(verb), width),
    '',
    ...text.flatMap((paragraph) => [...wrapText(paragraph, width), '']),
    ...listOptionTerms(verb).flatMap(([term, what]) => formatEntry(term, what, OPTION_COLUMN, width)),
    '',
    ...(failure ? [...wrapText(`Exit status 1 also where ${failure}.`, width), ''] : []),
    examples.length > 1 ? 'Examples:' : 'Example:',
    ...examples.flatMap((line) => formatExample(line, width)),
  ]
}

/** Wraps an example with backslashes, so that a shell reads its lines as one command. */
function formatExample(command: string, width: number): string[] {
  const lines = wrapText(command, width - 8)
  return lines.map((line, index) => `${index === 0 ? '  ' : '      '}${line}${index < lines.length - 1 ? ' \\' : ''}`)
}

/** Formats a term and its meaning in two columns. */
function formatEntry(term: string, text: string, wide: number, width: number): string[] {
  const column = width < NARROW.below ? NARROW.column : wide
  const [first = '', ...more] = wrapText(text, width - column).map((line) => ' '.repeat(column) + line)
  const isLong = term.length + 3 > column
  return isLong ? [`  ${term}`, first, ...more] : [`  ${term}`.padEnd(column) + first.trimStart(), ...more]
}
