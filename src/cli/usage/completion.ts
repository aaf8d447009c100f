import type { CompletionShell } from '../commands/about.ts'
import { getVerbForm, OPERATOR_VERB_NAMES, type OperatorVerb } from '../commands/index.ts'
import { CLI_OPTIONS, listOptionSpellings, type OptionName, parseOptionChoices } from '../commands/options.ts'

const COMPLETION_SCRIPTS: Readonly<Record<CompletionShell, () => string>> = {
  bash: formatBashScript,
  zsh: formatZshScript,
  fish: formatFishScript,
}

/** Returns a completion script for `modekeep`, generated from the tables of verbs and options. */
export function formatCompletionScript(shell: CompletionShell): string {
  return COMPLETION_SCRIPTS[shell]()
}

/** Kinds of names that `completion --offer` prints, by placeholder. */
const NAME_KINDS_BY_PLACEHOLDER: Readonly<Record<string, string>> = {
  NAMESPACE: 'namespaces',
  POD: 'pods',
  MOUNT: 'mounts',
  VOLUME: 'volumes',
  CODE: 'codes',
}

/** The candidates that a shell completes for a placeholder of the help. */
export interface CompletionCandidates {
  words: readonly string[]
  files: 'none' | 'directories' | 'all'
  /** Kinds of names that the script queries from modekeep. */
  records: readonly string[]
}

/** @param operand in the notation of the help: `[POD|MOUNT|VOLUME]`, `keep|grant` */
export function parseCompletionCandidates(operand = ''): CompletionCandidates {
  const placeholders: readonly string[] = operand.match(/[A-Z]+/g) ?? []
  return {
    words: placeholders.includes('VERB')
      ? OPERATOR_VERB_NAMES
      : parseOptionChoices(operand).filter((word) => /^\w/.test(word)),
    files: placeholders.includes('FILE') ? 'all' : placeholders.includes('DIR') ? 'directories' : 'none',
    records: placeholders.flatMap((placeholder) => NAME_KINDS_BY_PLACEHOLDER[placeholder] ?? []),
  }
}

export function formatBashScript(): string {
  return `# bash completion for modekeep
_modekeep() {
  local word=\${COMP_WORDS[COMP_CWORD]} before=\${COMP_WORDS[COMP_CWORD - 1]} words= files= records= options= name
  # "=" is a word of its own to bash: --group-access=gr is three.
  if [[ $word == = ]]; then word=; elif [[ $before == = ]]; then before=\${COMP_WORDS[COMP_CWORD - 2]}; fi
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    words="${OPERATOR_VERB_NAMES.join(' ')} --help --version"
  else
    case \${COMP_WORDS[1]} in
${OPERATOR_VERB_NAMES.map(formatBashVerb).join('\n')}
    esac
    # Words that begin with a dash are options, others what the verb takes.
    if [[ $word == -* && $options ]]; then words=$options files= records=; fi
  fi
  if [[ $files ]]; then
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen "$files" -- "$word")
  fi
  # Not by compgen: that would expand what is in a name.
  while read -r name; do
    if [[ $name && $name == "$word"* ]]; then COMPREPLY+=("$name"); fi
  done < <(
    for name in $words; do printf '%s\\n' "$name"; done
    for name in $records; do command modekeep completion --offer "$name" 2>/dev/null; done
  )
}
complete -F _modekeep modekeep
`
}

function formatBashVerb(verb: OperatorVerb): string {
  const { options, operands } = getVerbForm(verb)
  const names = Object.keys(options) as OptionName[]
  const valued = names.filter((name) => CLI_OPTIONS[name].type === 'string')
  const values = valued.map(
    (name) =>
      `          ${listOptionSpellings(name).join(' | ')}) ${formatBashAssignment(CLI_OPTIONS[name].value)} ;;\n`,
  )
  const [first, second] = (operands ?? '').split(' ')
  const operand = second
    ? `if ((COMP_CWORD > 2)); then ${formatBashAssignment(second)}; else ${formatBashAssignment(first)}; fi`
    : formatBashAssignment(first)
  return `      ${verb})
        case $before in
${values.join('')}          *) options="${names.flatMap(listOptionSpellings).join(' ')}"; ${operand} ;;
        esac
        ;;`
}

function formatBashAssignment(operand: string | undefined): string {
  const { words, files, records } = parseCompletionCandidates(operand)
  const flag = { none: '', directories: '-d', all: '-f' }[files]
  return `words="${words.join(' ')}" files=${flag} records="${records.join(' ')}"`
}

export function formatZshScript(): string {
  const verbs = OPERATOR_VERB_NAMES.map((verb) => `    ${quoteForZsh(`${verb}:${getVerbForm(verb).summary}`)}`)
  return `#compdef modekeep
# zsh completion for modekeep
_modekeep_records() {
  local kind expl ret=1
  local -a names
  for kind; do
    names=(\${(f)"$(command modekeep completion --offer $kind 2>/dev/null)"})
    _wanted $kind expl $kind compadd -a names && ret=0
  done
  return ret
}
# What may be a file besides.
_modekeep_records_or() {
  local files=$1 ret=1
  shift
  _modekeep_records "$@" && ret=0
  if [[ $files == directories ]]; then _files -/ && ret=0; else _files && ret=0; fi
  return ret
}
_modekeep() {
  local -a verbs
  verbs=(
${verbs.join('\n')}
  )
  if ((CURRENT == 2)); then
    _describe -t commands verb verbs
    return
  fi
  local verb=$words[2]
  shift words
  ((CURRENT--))
  case $verb in
${OPERATOR_VERB_NAMES.map(formatZshVerb).join('\n')}
  esac
}
if [[ $funcstack[1] == _modekeep ]]; then _modekeep "$@"; else compdef _modekeep modekeep; fi
`
}

function formatZshVerb(verb: OperatorVerb): string {
  const { options, operands } = getVerbForm(verb)
  const specs = Object.entries(options).flatMap(([name, text]) => formatZshOption(name as OptionName, text))
  for (const [index, operand] of (operands?.split(' ') ?? []).entries()) {
    specs.push(quoteForZsh(`${index + 1}:${operand}:${formatZshAction(operand)}`))
  }
  return `    ${verb})
      _arguments \\
${specs.map((spec) => `        ${spec} \\\n`).join('')}        && return
      ;;`
}

function formatZshOption(name: OptionName, text: string): string[] {
  const { value } = CLI_OPTIONS[name]
  const about = `[${text.replaceAll(/[[\]:]/g, '\\$&')}]`
  const all = listOptionSpellings(name)
  return all.map((spelling) => {
    const taken = spelling.startsWith('--') ? '=' : '+'
    const argument =
      value === undefined ? about : `${taken}${about}:${value.replaceAll(':', '\\:')}:${formatZshAction(value)}`
    return quoteForZsh(`(${all.join(' ')})${spelling}${argument}`)
  })
}

/** Formats the action of an argument. A leading blank makes zsh call the function with these arguments only. */
function formatZshAction(operand: string): string {
  const { words, files, records } = parseCompletionCandidates(operand)
  if (operand.includes('VERB')) return '{_describe -t commands verb verbs}'
  if (records.length > 0) {
    return files === 'none'
      ? ` _modekeep_records ${records.join(' ')}`
      : ` _modekeep_records_or ${files} ${records.join(' ')}`
  }
  if (files !== 'none') return files === 'all' ? '_files' : '_files -/'
  return words.length > 0 ? `(${words.join(' ')})` : ' '
}

function quoteForZsh(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}

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
${OPERATOR_VERB_NAMES.map((verb) => `complete -c modekeep -n __modekeep_is_first -a ${verb} -d ${quoteForFish(getVerbForm(verb).summary)}\n`).join('')}${OPERATOR_VERB_NAMES.flatMap(formatFishVerb).join('\n')}
`
}

function formatFishVerb(verb: OperatorVerb): string[] {
  const { options, operands } = getVerbForm(verb)
  const lines = Object.entries(options).map(([name, text]) => formatFishOption(verb, name as OptionName, text))
  const [first, second] = (operands ?? '').split(' ')
  lines.push(...formatFishOperand(second ? `${verb} -eq 2` : verb, first))
  if (second) lines.push(...formatFishOperand(`${verb} -gt 2`, second))
  return lines
}

function formatFishOption(verb: OperatorVerb, name: OptionName, text: string): string {
  const { value, short } = CLI_OPTIONS[name]
  const spelling = `-l ${name}${short ? ` -s ${short}` : ''}`
  const taken = value === undefined ? '' : ` ${formatFishArgument(parseCompletionCandidates(value))}`
  return `complete -c modekeep -n '__modekeep_at ${verb}' ${spelling}${taken} -d ${quoteForFish(text)}`
}

function formatFishOperand(at: string, operands: string | undefined): string[] {
  const offer = parseCompletionCandidates(operands)
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
