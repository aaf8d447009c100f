import type { VerbForm } from '../verbs/form.ts'
import { isVerb, KUBELETS_VERBS, VERB_NAMES, type Verb, verbForm } from '../verbs/index.ts'
import { formOf, type OptionName } from '../verbs/options.ts'

export const PURPOSE = "gives a directory's files to a group without damaging them, and puts back what it changed"

/** Exit statuses of all verbs, for help and the man page. */
export const EXIT_STATUSES: readonly (readonly [string, string])[] = [
  ['0', 'done'],
  ['1', 'failed or refused'],
  ['2', 'the arguments are wrong'],
  ['130', 'interrupted (Ctrl-C)'],
]

const WIDTH = 80
const OPTION_COLUMN = 25

/** @param topic undefined: the overview */
export function helpText(topic: string | undefined): string {
  return topic !== undefined && isVerb(topic) ? helpOf(topic, verbForm(topic)) : overview()
}

/** How a verb is called. */
export function usageOf(verb: Verb): string {
  const { operands, needs = '', options } = verbForm(verb)
  const optional = Object.keys(options).filter((name) => name !== 'help' && !needs.includes(`--${name}`))
  const rest = optional.length > 1 ? '[options]' : optional.map((name) => `[--${name}]`).join('')
  return ['modekeep', verb, operands, needs, rest].filter((part) => part !== '').join(' ')
}

/** `-f, --follow`, with what its value is called. */
export function optionTerm(name: OptionName): string {
  const { short, value } = formOf(name)
  return `${short ? `-${short}, ` : ''}--${name}${value ? ` ${value}` : ''}`
}

function overview(): string {
  const rows = VERB_NAMES.map((verb) => {
    const { operands, needs = '', summary } = verbForm(verb)
    return [[verb, operands, needs].filter((part) => part !== '').join(' '), summary] as const
  })
  return `${[
    ...wrapped(`modekeep ${PURPOSE}.`, WIDTH),
    '',
    'By hand, as root:',
    ...rows.flatMap(([term, text]) => entry(`modekeep ${term}`, text, 36)),
    '',
    `For kubelet: ${KUBELETS_VERBS.join(', ')}.`,
    '',
    ...wrapped(`Exit status: ${EXIT_STATUSES.map(([status, meaning]) => `${status} ${meaning}`).join(', ')}.`, WIDTH),
    '"modekeep VERB --help" has the rest.',
    '',
    'Example:',
    '  modekeep plan /srv/volumes/data --fsgroup 2000',
  ].join('\n')}\n`
}

function helpOf(verb: Verb, { text, options, examples, failure }: VerbForm): string {
  return `${[
    usageOf(verb),
    '',
    ...text.flatMap((paragraph) => [...wrapped(paragraph, WIDTH), '']),
    ...Object.entries(options).flatMap(([name, what]) => entry(optionTerm(name as OptionName), what, OPTION_COLUMN)),
    '',
    ...(failure ? [...wrapped(`Exit status 1 also where ${failure}.`, WIDTH), ''] : []),
    examples.length > 1 ? 'Examples:' : 'Example:',
    ...examples.map((example) => `  ${example}`),
  ].join('\n')}\n`
}

/** A term and what it means, in two columns. */
function entry(term: string, text: string, column: number): string[] {
  const [first = '', ...more] = wrapped(text, WIDTH - column)
  const indented = more.map((line) => ' '.repeat(column) + line)
  if (term.length + 3 > column) return [`  ${term}`, ' '.repeat(column) + first, ...indented]
  return [`  ${term}`.padEnd(column) + first, ...indented]
}

function wrapped(text: string, width: number): string[] {
  const lines: string[] = []
  let line = ''
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line)
      line = word
    } else line = line === '' ? word : `${line} ${word}`
  }
  return [...lines, line]
}
