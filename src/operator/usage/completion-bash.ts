import { getVerbForm, VERB_NAMES, type Verb } from '../verbs/index.ts'
import { listSpellings, OPTIONS, type OptionName } from '../verbs/options.ts'
import { parseCandidates } from './completion-candidates.ts'

export function formatBashScript(): string {
  return `# bash completion for modekeep
_modekeep() {
  local word=\${COMP_WORDS[COMP_CWORD]} before=\${COMP_WORDS[COMP_CWORD - 1]} words= files= records= options= name
  # "=" is a word of its own to bash: --group-access=gr is three.
  if [[ $word == = ]]; then word=; elif [[ $before == = ]]; then before=\${COMP_WORDS[COMP_CWORD - 2]}; fi
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    words="${VERB_NAMES.join(' ')} --help --version"
  else
    case \${COMP_WORDS[1]} in
${VERB_NAMES.map(formatBashVerb).join('\n')}
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

function formatBashVerb(verb: Verb): string {
  const { options, operands } = getVerbForm(verb)
  const names = Object.keys(options) as OptionName[]
  const valued = names.filter((name) => OPTIONS[name].type === 'string')
  const values = valued.map(
    (name) => `          ${listSpellings(name).join(' | ')}) ${formatAssignment(OPTIONS[name].value)} ;;\n`,
  )
  const [first, second] = (operands ?? '').split(' ')
  const operand = second
    ? `if ((COMP_CWORD > 2)); then ${formatAssignment(second)}; else ${formatAssignment(first)}; fi`
    : formatAssignment(first)
  return `      ${verb})
        case $before in
${values.join('')}          *) options="${names.flatMap(listSpellings).join(' ')}"; ${operand} ;;
        esac
        ;;`
}

function formatAssignment(operand: string | undefined): string {
  const { words, files, records } = parseCandidates(operand)
  const flag = { none: '', directories: '-d', all: '-f' }[files]
  return `words="${words.join(' ')}" files=${flag} records="${records.join(' ')}"`
}
