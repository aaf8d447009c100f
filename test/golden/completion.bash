# bash completion for modekeep
_modekeep() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} words= files= records= options= name
  # "=" is a word of its own to bash: --group-access=gr is three.
  if [[ $word == = ]]; then word=; elif [[ $before == = ]]; then before=${COMP_WORDS[COMP_CWORD - 2]}; fi
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    words="plan apply restore journal status heal doctor logs support-bundle explain gc migrate install uninstall csi nri device-plugin completion version help --help --version"
  else
    case ${COMP_WORDS[1]} in
      plan)
        case $before in
          --fsgroup) words="" files= records="" ;;
          --group-access) words="keep grant" files= records="" ;;
          --fs-group-change-policy) words="OnRootMismatch Always" files= records="" ;;
          *) options="--fsgroup --group-access --fs-group-change-policy --force --yes --json -h --help"; words="" files=-d records="" ;;
        esac
        ;;
      apply)
        case $before in
          --fsgroup) words="" files= records="" ;;
          --group-access) words="keep grant" files= records="" ;;
          --fs-group-change-policy) words="OnRootMismatch Always" files= records="" ;;
          *) options="--fsgroup --group-access --fs-group-change-policy --force --yes --json -h --help"; words="" files=-d records="" ;;
        esac
        ;;
      restore)
        case $before in
          *) options="--dry-run --force --json -h --help"; words="" files=-d records="volumes" ;;
        esac
        ;;
      journal)
        case $before in
          --output) words="" files=-f records="" ;;
          --at) words="" files=-d records="" ;;
          *) options="--output --force --at --dry-run --json -h --help"; if ((COMP_CWORD > 2)); then words="" files=-f records="volumes"; else words="export import" files= records=""; fi ;;
        esac
        ;;
      status)
        case $before in
          -n | --namespace) words="" files= records="namespaces" ;;
          -o | --format) words="json yaml wide name" files= records="" ;;
          --output) words="" files=-f records="" ;;
          *) options="-n --namespace -o --format --watch --prometheus --output --json -h --help"; words="" files= records="pods mounts volumes" ;;
        esac
        ;;
      heal)
        case $before in
          --kubelet-dir) words="" files=-d records="" ;;
          --listen) words="" files= records="" ;;
          *) options="--dry-run --watch --kubelet-subpaths --kubelet-dir --listen --metrics --answer-calls --json -h --help"; words="" files= records="" ;;
        esac
        ;;
      doctor)
        case $before in
          --config) words="" files=-f records="" ;;
          *) options="--config --json -h --help"; words="" files= records="" ;;
        esac
        ;;
      logs)
        case $before in
          -n | --lines) words="" files= records="" ;;
          --since) words="" files= records="" ;;
          --pod) words="" files= records="pods" ;;
          *) options="-f --follow -n --lines --since --failed --pod --json -h --help"; words="" files= records="" ;;
        esac
        ;;
      support-bundle)
        case $before in
          --output) words="" files=-f records="" ;;
          *) options="--output --json -h --help"; words="" files= records="" ;;
        esac
        ;;
      explain)
        case $before in
          *) options="--json -h --help"; words="" files= records="codes" ;;
        esac
        ;;
      gc)
        case $before in
          --forget) words="" files= records="volumes" ;;
          *) options="--dry-run --forget --json -h --help"; words="" files= records="" ;;
        esac
        ;;
      migrate)
        case $before in
          *) options="--json -h --help"; words="" files=-f records="" ;;
        esac
        ;;
      install)
        case $before in
          --binary) words="" files=-f records="" ;;
          --sha256) words="" files= records="" ;;
          --config) words="" files=-f records="" ;;
          --node-root) words="" files=-d records="" ;;
          --plugin-dir) words="" files=-d records="" ;;
          --root) words="" files=-d records="" ;;
          --proc) words="" files=-d records="" ;;
          *) options="--binary --sha256 --config --node-root --any-kubelet --plugin-dir --dry-run --root --proc --json -h --help"; words="" files= records="" ;;
        esac
        ;;
      uninstall)
        case $before in
          --plugin-dir) words="" files=-d records="" ;;
          --root) words="" files=-d records="" ;;
          --proc) words="" files=-d records="" ;;
          *) options="--purge --force --plugin-dir --dry-run --root --proc --json -h --help"; words="" files= records="" ;;
        esac
        ;;
      csi)
        case $before in
          --kubelet-dir) words="" files=-d records="" ;;
          --driver-name) words="" files= records="" ;;
          --node-id) words="" files= records="" ;;
          --api-server) words="" files= records="" ;;
          --api-access) words="" files=-d records="" ;;
          *) options="--kubelet-dir --driver-name --node-id --api-server --api-access --probe --json -h --help"; words="" files= records="" ;;
        esac
        ;;
      nri)
        case $before in
          --socket) words="" files= records="" ;;
          --cri-socket) words="" files= records="" ;;
          --kubelet-dir) words="" files=-d records="" ;;
          --plugin-index) words="" files= records="" ;;
          *) options="--socket --cri-socket --kubelet-dir --plugin-index --probe --json -h --help"; words="" files= records="" ;;
        esac
        ;;
      device-plugin)
        case $before in
          --devices) words="" files= records="" ;;
          --kubelet-dir) words="" files=-d records="" ;;
          *) options="--devices --kubelet-dir --json -h --help"; words="" files= records="" ;;
        esac
        ;;
      completion)
        case $before in
          --offer) words="namespaces pods mounts volumes codes" files= records="" ;;
          *) options="--offer --json -h --help"; words="bash zsh fish" files= records="" ;;
        esac
        ;;
      version)
        case $before in
          *) options="--json -h --help"; words="" files= records="" ;;
        esac
        ;;
      help)
        case $before in
          *) options="--man --json -h --help"; words="plan apply restore journal status heal doctor logs support-bundle explain gc migrate install uninstall csi nri device-plugin completion version help" files= records="" ;;
        esac
        ;;
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
    for name in $words; do printf '%s\n' "$name"; done
    for name in $records; do command modekeep completion --offer "$name" 2>/dev/null; done
  )
}
complete -F _modekeep modekeep
