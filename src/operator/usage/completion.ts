import { VERB_NAMES, type Verb, verbForm } from '../verbs/index.ts'
import { choicesOf, OPTIONS, type OptionName, spellings } from '../verbs/options.ts'

/** A script that completes the words of `modekeep`, made from the tables of verbs and options. */
export function completionScript(shell: 'bash' | 'zsh'): string {
  return shell === 'bash' ? bash() : zsh()
}

function bash(): string {
  const valued = (Object.keys(OPTIONS) as OptionName[]).filter((name) => OPTIONS[name].type === 'string')
  return `# bash completion for modekeep
_modekeep() {
  local word=\${COMP_WORDS[COMP_CWORD]} before=\${COMP_WORDS[COMP_CWORD - 1]} words= options=
  # "=" is a word of its own to bash: --group-access=gr is three.
  if [[ $word == = ]]; then word=; elif [[ $before == = ]]; then before=\${COMP_WORDS[COMP_CWORD - 2]}; fi
  case $before in
${valued.map((name) => `    ${spellings(name).join(' | ')}) words=${bashWords(OPTIONS[name].value)} ;;`).join('\n')}
    *)
      case \${COMP_WORDS[1]} in
${VERB_NAMES.map(bashVerb).join('\n')}
      esac
      # Words that begin with a dash are options, others the operand.
      if [[ $word == -* ]]; then words=$options; fi
      ;;
  esac
  if ((COMP_CWORD == 1)); then words="${VERB_NAMES.join(' ')} --help --version"; fi
  if [[ $words == [/.] ]]; then
    compopt -o filenames 2>/dev/null
    if [[ $words == / ]]; then mapfile -t COMPREPLY < <(compgen -d -- "$word")
    else mapfile -t COMPREPLY < <(compgen -f -- "$word"); fi
  else
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
  fi
}
complete -F _modekeep modekeep
`
}

function bashVerb(verb: Verb): string {
  const { options, operands } = verbForm(verb)
  const names = (Object.keys(options) as OptionName[]).flatMap(spellings)
  const [first, second] = (operands ?? '').split(' ')
  const words = second
    ? `$( ((COMP_CWORD > 2)) && echo ${bashWords(second)} || echo ${bashWords(first)})`
    : bashWords(first)
  return `        ${verb}) words=${words} options="${names.join(' ')}" ;;`
}

/** The words to choose from; `/` for directories, `.` for files too. */
function bashWords(operand: string | undefined): string {
  if (operand?.includes('FILE')) return '.'
  if (operand?.includes('DIR')) return '/'
  return `"${(operand?.includes('VERB') ? VERB_NAMES : choicesOf(operand)).join(' ')}"`
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
  const { options, operands } = verbForm(verb)
  const specs = Object.entries(options).flatMap(([name, text]) => zshOption(name as OptionName, text))
  for (const [index, operand] of (operands?.split(' ') ?? []).entries()) {
    specs.push(quoted(`${index + 1}:${operand}:${zshAction(operand)}`))
  }
  return `    ${verb})
      _arguments \\
${specs.map((spec) => `        ${spec} \\\n`).join('')}        && return
      ;;`
}

function zshOption(name: OptionName, text: string): string[] {
  const { value } = OPTIONS[name]
  const about = `[${text.replaceAll(/[[\]:]/g, '\\$&')}]`
  const all = spellings(name)
  return all.map((spelling) => {
    const taken = spelling.startsWith('--') ? '=' : '+'
    const argument = value === undefined ? about : `${taken}${about}:${value}:${zshAction(value)}`
    return quoted(`(${all.join(' ')})${spelling}${argument}`)
  })
}

function zshAction(operand: string): string {
  if (operand.includes('FILE')) return '_files'
  if (operand.includes('DIR')) return '_files -/'
  if (operand.includes('VERB')) return '{_describe -t commands verb verbs}'
  return `(${choicesOf(operand).join(' ')})`.replace('()', ' ')
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}
