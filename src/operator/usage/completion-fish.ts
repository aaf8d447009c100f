import { VERB_NAMES, type Verb, verbForm } from '../verbs/index.ts'
import { OPTIONS, type OptionName } from '../verbs/options.ts'
import { type Offer, offerFor } from './offer.ts'

export function fish(): string {
  return `# fish completion for modekeep
function __modekeep_offer
    command -q modekeep; or return
    for kind in $argv
        command modekeep completion --offer $kind 2>/dev/null
    end
end
# The verb, and the place of the word after it where that matters.
function __modekeep_at
    set -l words (commandline -opc)
    test "$words[2]" = "$argv[1]"; or return
    test -z "$argv[2]"; or test (count $words) $argv[2] $argv[3]
end
function __modekeep_is_first
    test (count (commandline -opc)) -eq 1
end
complete -c modekeep -f
complete -c modekeep -n __modekeep_is_first -l help -s h -d 'print the overview'
complete -c modekeep -n __modekeep_is_first -l version -d 'print the version'
${VERB_NAMES.map((verb) => `complete -c modekeep -n __modekeep_is_first -a ${verb} -d ${quoted(verbForm(verb).summary)}\n`).join('')}${VERB_NAMES.flatMap(ofVerb).join('\n')}
`
}

function ofVerb(verb: Verb): string[] {
  const { options, operands } = verbForm(verb)
  const lines = Object.entries(options).map(([name, text]) => option(verb, name as OptionName, text))
  const [first, second] = (operands ?? '').split(' ')
  lines.push(...operand(second ? `${verb} -eq 2` : verb, first))
  if (second) lines.push(...operand(`${verb} -gt 2`, second))
  return lines
}

function option(verb: Verb, name: OptionName, text: string): string {
  const { value, short } = OPTIONS[name]
  const spelling = `-l ${name}${short ? ` -s ${short}` : ''}`
  const taken = value === undefined ? '' : ` ${taking(offerFor(value))}`
  return `complete -c modekeep -n '__modekeep_at ${verb}' ${spelling}${taken} -d ${quoted(text)}`
}

function operand(at: string, operands: string | undefined): string[] {
  const offer = offerFor(operands)
  const isNothing = offer.files === 'none' && offer.words.length === 0 && offer.records.length === 0
  return isNothing
    ? []
    : [`complete -c modekeep -n '__modekeep_at ${at}' ${taking(offer).replace(/^-[rx] ?/, '')}`.trimEnd()]
}

/** -x: a value, and no file but what is offered; -r -F: a value that may be any file. */
function taking({ words, files, records }: Offer): string {
  const offered = [
    ...words,
    ...(records.length > 0 ? [`(__modekeep_offer ${records.join(' ')})`] : []),
    ...(files === 'directories' ? ['(__fish_complete_directories (commandline -ct) "")'] : []),
  ]
  const list = offered.length > 0 ? ` -a ${quoted(offered.join(' '))}` : ''
  return `${files === 'all' ? '-r -F' : '-x'}${list}`
}

function quoted(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
}
