import { getVerbForm, VERB_NAMES, type Verb } from '../verbs/index.ts'
import { OPTIONS, type OptionName } from '../verbs/options.ts'
import { type CompletionCandidates, parseCandidates } from './completion-candidates.ts'

export function formatFishScript(): string {
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
${VERB_NAMES.map((verb) => `complete -c modekeep -n __modekeep_is_first -a ${verb} -d ${quoteForFish(getVerbForm(verb).summary)}\n`).join('')}${VERB_NAMES.flatMap(formatFishVerb).join('\n')}
`
}

function formatFishVerb(verb: Verb): string[] {
  const { options, operands } = getVerbForm(verb)
  const lines = Object.entries(options).map(([name, text]) => formatFishOption(verb, name as OptionName, text))
  const [first, second] = (operands ?? '').split(' ')
  lines.push(...formatFishOperand(second ? `${verb} -eq 2` : verb, first))
  if (second) lines.push(...formatFishOperand(`${verb} -gt 2`, second))
  return lines
}

function formatFishOption(verb: Verb, name: OptionName, text: string): string {
  const { value, short } = OPTIONS[name]
  const spelling = `-l ${name}${short ? ` -s ${short}` : ''}`
  const taken = value === undefined ? '' : ` ${formatFishArgument(parseCandidates(value))}`
  return `complete -c modekeep -n '__modekeep_at ${verb}' ${spelling}${taken} -d ${quoteForFish(text)}`
}

function formatFishOperand(at: string, operands: string | undefined): string[] {
  const offer = parseCandidates(operands)
  const isNothing = offer.files === 'none' && offer.words.length === 0 && offer.records.length === 0
  return isNothing
    ? []
    : [`complete -c modekeep -n '__modekeep_at ${at}' ${formatFishArgument(offer).replace(/^-[rx] ?/, '')}`.trimEnd()]
}

/** Formats an option's value. `-x`: only the listed candidates; `-r -F`: any file. */
function formatFishArgument({ words, files, records }: CompletionCandidates): string {
  const offered = [
    ...words,
    ...(records.length > 0 ? [`(__modekeep_offer ${records.join(' ')})`] : []),
    ...(files === 'directories' ? ['(__fish_complete_directories (commandline -ct) "")'] : []),
  ]
  const list = offered.length > 0 ? ` -a ${quoteForFish(offered.join(' '))}` : ''
  return `${files === 'all' ? '-r -F' : '-x'}${list}`
}

function quoteForFish(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
}
