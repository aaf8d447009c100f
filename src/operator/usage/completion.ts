import { VERB_NAMES, type Verb, verbForm } from '../verbs/index.ts'
import { formOf, type OptionName } from '../verbs/options.ts'

/** A script that completes the words of `modekeep`, made from the table of verbs. */
export function completionScript(shell: 'bash' | 'zsh'): string {
  return shell === 'bash' ? bash() : zsh()
}

function bash(): string {
  return `# bash completion for modekeep
_modekeep() {
  local word=\${COMP_WORDS[COMP_CWORD]} before=\${COMP_WORDS[COMP_CWORD - 1]} verb=\${COMP_WORDS[1]}
  COMPREPLY=()
  # "=" is a word of its own to bash: --group-access=gr is three.
  if [[ $word == = ]]; then word=; elif [[ $before == = ]]; then before=\${COMP_WORDS[COMP_CWORD - 2]}; fi
  if ((COMP_CWORD == 1)); then
    _modekeep_words "${VERB_NAMES.join(' ')} --help --version"
    return
  fi
  case $verb in
${VERB_NAMES.map(bashVerb).join('\n')}
  esac
}
_modekeep_words() { mapfile -t COMPREPLY < <(compgen -W "$1" -- "$word"); }
_modekeep_directories() {
  compopt -o filenames 2>/dev/null
  mapfile -t COMPREPLY < <(compgen -d -- "$word")
}
complete -F _modekeep modekeep
`
}

function bashVerb(verb: Verb): string {
  const { options, completes } = verbForm(verb)
  const names = Object.keys(options) as OptionName[]
  const valued = names.filter((name) => formOf(name).value !== undefined)
  const cases = valued.map((name) => {
    const { choices, completes, short } = formOf(name)
    const action = choices
      ? `_modekeep_words "${choices.join(' ')}"`
      : completes === 'directories'
        ? '_modekeep_directories'
        : ':'
    return `        --${name}${short ? ` | -${short}` : ''}) ${action}; return ;;`
  })
  return [
    `    ${verb})`,
    ...(cases.length > 0 ? ['      case $before in', ...cases, '      esac'] : []),
    // Words that begin with a dash are options, others the operand.
    `      if [[ $word == -* ]]; then _modekeep_words "${flags(names).join(' ')}"`,
    `      else ${bashOperand(completes)}`,
    '      fi',
    '      ;;',
  ].join('\n')
}

function bashOperand(completes: ReturnType<typeof verbForm>['completes']): string {
  if (completes === 'directories') return '_modekeep_directories'
  if (completes === undefined) return ':'
  return `_modekeep_words "${(completes === 'verbs' ? VERB_NAMES : completes).join(' ')}"`
}

function flags(names: readonly OptionName[]): string[] {
  return names.flatMap((name) => {
    const { short } = formOf(name)
    return short ? [`--${name}`, `-${short}`] : [`--${name}`]
  })
}

function zsh(): string {
  const verbs = VERB_NAMES.map((verb) => `    ${quoted(`${verb}:${verbForm(verb).summary}`)}`)
  return `#compdef modekeep
# zsh completion for modekeep
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
${VERB_NAMES.map(zshVerb).join('\n')}
  esac
}
if [[ $funcstack[1] == _modekeep ]]; then _modekeep "$@"; else compdef _modekeep modekeep; fi
`
}

function zshVerb(verb: Verb): string {
  const { options, completes } = verbForm(verb)
  const specs = Object.entries(options).flatMap(([name, text]) => zshOption(name as OptionName, text))
  if (completes === 'directories') specs.push("'1:directory:_files -/'")
  else if (completes === 'verbs') specs.push("'1:verb:{_describe -t commands verb verbs}'")
  else if (completes) specs.push(`'1:name:(${completes.join(' ')})'`)
  return [
    `    ${verb})`,
    '      _arguments \\',
    ...specs.map((spec) => `        ${spec} \\`),
    '        && return',
    '      ;;',
  ].join('\n')
}

function zshOption(name: OptionName, text: string): string[] {
  const { short, value, choices, completes } = formOf(name)
  const about = `[${text.replaceAll(/[[\]:]/g, (found) => `\\${found}`)}]`
  const action = choices ? `(${choices.join(' ')})` : completes === 'directories' ? '_files -/' : ' '
  const argument = value === undefined ? '' : `:${value}:${action}`
  const equals = value === undefined ? '' : '='
  const long = quoted(`(${short ? `-${short} ` : ''}--${name})--${name}${equals}${about}${argument}`)
  return short
    ? [long, quoted(`(-${short} --${name})-${short}${value === undefined ? '' : '+'}${about}${argument}`)]
    : [long]
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}
