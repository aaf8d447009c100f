import { getVerbForm, VERB_NAMES, type Verb } from '../verbs/index.ts'
import { listSpellings, OPTIONS, type OptionName } from '../verbs/options.ts'
import { parseCandidates } from './completion-candidates.ts'

export function formatZshScript(): string {
  const verbs = VERB_NAMES.map((verb) => `    ${quoteForZsh(`${verb}:${getVerbForm(verb).summary}`)}`)
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
${VERB_NAMES.map(formatZshVerb).join('\n')}
  esac
}
if [[ $funcstack[1] == _modekeep ]]; then _modekeep "$@"; else compdef _modekeep modekeep; fi
`
}

function formatZshVerb(verb: Verb): string {
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
  const { value } = OPTIONS[name]
  const about = `[${text.replaceAll(/[[\]:]/g, '\\$&')}]`
  const all = listSpellings(name)
  return all.map((spelling) => {
    const taken = spelling.startsWith('--') ? '=' : '+'
    const argument =
      value === undefined ? about : `${taken}${about}:${value.replaceAll(':', '\\:')}:${formatZshAction(value)}`
    return quoteForZsh(`(${all.join(' ')})${spelling}${argument}`)
  })
}

/** Formats the action of an argument. A leading blank makes zsh call the function with these arguments only. */
function formatZshAction(operand: string): string {
  const { words, files, records } = parseCandidates(operand)
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
