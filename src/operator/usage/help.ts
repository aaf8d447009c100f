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

/** @param topic undefined: the overview */
export function helpText(topic: string | undefined): string {
  const lines = topic !== undefined && isVerb(topic) ? helpOf(topic) : overview()
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

function overview(): string[] {
  return [
    ...wrapped(`modekeep ${PURPOSE}.`, WIDTH),
    '',
    'By hand, as root:',
    ...VERB_NAMES.flatMap((verb) => entry(neededOf(verb), verbForm(verb).summary, VERB_COLUMN)),
    '',
    `For kubelet: ${KUBELETS_VERBS.join(', ')}.`,
    '',
    ...wrapped(`Exit status: ${EXIT_STATUSES.map((status) => status.join(' ')).join(', ')}.`, WIDTH),
    '"modekeep VERB --help" has the rest.',
    '',
    'Example:',
    '  modekeep plan /srv/volumes/data --fsgroup 2000',
  ]
}

function helpOf(verb: Verb): string[] {
  const { text, examples, failure } = verbForm(verb)
  return [
    usageOf(verb),
    '',
    ...text.flatMap((paragraph) => [...wrapped(paragraph, WIDTH), '']),
    ...optionTerms(verb).flatMap(([term, what]) => entry(term, what, OPTION_COLUMN)),
    '',
    ...(failure ? [...wrapped(`Exit status 1 also where ${failure}.`, WIDTH), ''] : []),
    examples.length > 1 ? 'Examples:' : 'Example:',
    ...examples.map((example) => `  ${example}`),
  ]
}

/** A term and what it means, in two columns. */
function entry(term: string, text: string, column: number): string[] {
  const [first = '', ...more] = wrapped(text, WIDTH - column).map((line) => ' '.repeat(column) + line)
  const isLong = term.length + 3 > column
  return isLong ? [`  ${term}`, first, ...more] : [`  ${term}`.padEnd(column) + first.trimStart(), ...more]
}

function wrapped(text: string, width: number): string[] {
  const lines: string[] = []
  for (const word of text.split(' ')) {
    const line = lines.at(-1)
    if (line === undefined || line.length + 1 + word.length > width) lines.push(word)
    else lines[lines.length - 1] = `${line} ${word}`
  }
  return lines
}
