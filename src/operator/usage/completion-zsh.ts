import { VERB_NAMES, type Verb, verbForm } from '../verbs/index.ts'
import { OPTIONS, type OptionName, spellings } from '../verbs/options.ts'
import { offerFor } from './offer.ts'

export function zsh(): string {
  const verbs = VERB_NAMES.map((verb) => `    ${quoted(`${verb}:${verbForm(verb).summary}`)}`)
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
${VERB_NAMES.map(ofVerb).join('\n')}
  esac
}
if [[ $funcstack[1] == _modekeep ]]; then _modekeep "$@"; else compdef _modekeep modekeep; fi
`
}

function ofVerb(verb: Verb): string {
  const { options, operands } = verbForm(verb)
  const specs = Object.entries(options).flatMap(([name, text]) => option(name as OptionName, text))
  for (const [index, operand] of (operands?.split(' ') ?? []).entries()) {
    specs.push(quoted(`${index + 1}:${operand}:${action(operand)}`))
  }
  return `    ${verb})
      _arguments \\
${specs.map((spec) => `        ${spec} \\\n`).join('')}        && return
      ;;`
}

function option(name: OptionName, text: string): string[] {
  const { value } = OPTIONS[name]
  const about = `[${text.replaceAll(/[[\]:]/g, '\\$&')}]`
  const all = spellings(name)
  return all.map((spelling) => {
    const taken = spelling.startsWith('--') ? '=' : '+'
    const argument = value === undefined ? about : `${taken}${about}:${value.replaceAll(':', '\\:')}:${action(value)}`
    return quoted(`(${all.join(' ')})${spelling}${argument}`)
  })
}

/** With a blank before a function it gets these arguments alone. */
function action(operand: string): string {
  const { words, files, records } = offerFor(operand)
  if (operand.includes('VERB')) return '{_describe -t commands verb verbs}'
  if (records.length > 0) {
    return files === 'none'
      ? ` _modekeep_records ${records.join(' ')}`
      : ` _modekeep_records_or ${files} ${records.join(' ')}`
  }
  if (files !== 'none') return files === 'all' ? '_files' : '_files -/'
  return words.length > 0 ? `(${words.join(' ')})` : ' '
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}
