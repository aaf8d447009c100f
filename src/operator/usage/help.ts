import { wrapped } from '../text/wrap.ts'
import { isVerb, KUBELETS_VERBS, VERB_NAMES, type Verb, verbForm } from '../verbs/index.ts'
import { OPTIONS, type OptionName, spellings } from '../verbs/options.ts'

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
/** Where there is no room for two columns, what a term means is below it. */
const NARROW = { below: 70, column: 6 }

/**
 * @param topic undefined: the overview
 * @param width in columns; only a word that is longer, to be copied whole, is not cut
 */
export function helpText(topic: string | undefined, width = WIDTH): string {
  const lines = topic !== undefined && isVerb(topic) ? helpOf(topic, width) : overview(width)
  return lines.map((line) => `${line}\n`).join('')
}

/** How a verb is called. */
export function usageOf(verb: Verb): string {
  const { needs = '', options } = verbForm(verb)
  const optional = Object.keys(options).filter((name) => name !== 'help' && !needs.includes(`--${name}`))
  return `${neededOf(verb)} ${optional.length > 1 ? '[options]' : `[--${optional[0]}]`}`
}

function neededOf(verb: Verb): string {
  const { operands = '', needs = '' } = verbForm(verb)
  return ['modekeep', verb, operands, needs].filter((part) => part !== '').join(' ')
}

/** What help and the man page list: `-f, --follow`, with what its value is called, and what it does. */
export function optionTerms(verb: Verb): [term: string, text: string][] {
  return (Object.entries(verbForm(verb).options) as [OptionName, string][]).map(([name, text]) => {
    const { value } = OPTIONS[name]
    return [`${spellings(name).join(', ')}${value ? ` ${value}` : ''}`, text]
  })
}

function overview(width: number): string[] {
  return [
    ...wrapped(`modekeep ${PURPOSE}.`, width),
    '',
    'By hand, as root:',
    ...VERB_NAMES.flatMap((verb) => entry(neededOf(verb), verbForm(verb).summary, VERB_COLUMN, width)),
    '',
    ...wrapped(`For kubelet: ${KUBELETS_VERBS.join(', ')}.`, width),
    '',
    ...wrapped(`Exit status: ${EXIT_STATUSES.map((status) => status.join(' ')).join(', ')}.`, width),
    '"modekeep VERB --help" has the rest.',
    '',
    'Example:',
    ...example('modekeep plan /srv/volumes/data --fsgroup 2000', width),
  ]
}

/** In the order of the help. */
const EVERY_DAYS = [
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

/** What modekeep alone prints. @param mounted what is mounted on this node, in one line */
export function firstLook(version: string, mounted: string): string {
  const commands = EVERY_DAYS.flatMap((verb) => entry(neededOf(verb), verbForm(verb).summary, VERB_COLUMN, WIDTH))
  const head = [`modekeep ${version} ${PURPOSE}.`, `Mounts: ${mounted}.`].flatMap((text) => wrapped(text, WIDTH))
  const foot = '"modekeep help" has all commands, "modekeep VERB --help" what each of them takes.'
  return [...head, '', ...commands, '', ...wrapped(foot, WIDTH)].map((line) => `${line}\n`).join('')
}

function helpOf(verb: Verb, width: number): string[] {
  const { text, examples, failure } = verbForm(verb)
  return [
    ...wrapped(usageOf(verb), width),
    '',
    ...text.flatMap((paragraph) => [...wrapped(paragraph, width), '']),
    ...optionTerms(verb).flatMap(([term, what]) => entry(term, what, OPTION_COLUMN, width)),
    '',
    ...(failure ? [...wrapped(`Exit status 1 also where ${failure}.`, width), ''] : []),
    examples.length > 1 ? 'Examples:' : 'Example:',
    ...examples.flatMap((line) => example(line, width)),
  ]
}

/** To be copied: a shell takes its lines for one. */
function example(command: string, width: number): string[] {
  const lines = wrapped(command, width - 8)
  return lines.map((line, index) => `${index === 0 ? '  ' : '      '}${line}${index < lines.length - 1 ? ' \\' : ''}`)
}

/** A term and what it means, in two columns. */
function entry(term: string, text: string, wide: number, width: number): string[] {
  const column = width < NARROW.below ? NARROW.column : wide
  const [first = '', ...more] = wrapped(text, width - column).map((line) => ' '.repeat(column) + line)
  const isLong = term.length + 3 > column
  return isLong ? [`  ${term}`, first, ...more] : [`  ${term}`.padEnd(column) + first.trimStart(), ...more]
}
