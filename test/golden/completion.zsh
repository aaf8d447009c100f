#compdef modekeep
# zsh completion for modekeep
_modekeep_records() {
  local kind expl ret=1
  local -a names
  for kind; do
    names=(${(f)"$(command modekeep completion --offer $kind 2>/dev/null)"})
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
    'plan:print what apply and kubelet would change'
    'apply:give DIR to group G, as a pod'\''s mount with ownership: walk does'
    'restore:put back all that modekeep has changed in DIR'
    'journal:move what is on record of a volume to another node, or a backup'
    'status:list mounts, how their groups were given, and their state'
    'heal:repair mounts whose source, daemon or layers changed'
    'doctor:check the node: kernel, helpers, kubelet, permissions, records'
    'logs:show what kubelet'\''s calls and these commands did'
    'support-bundle:write a tar file about this node, for an issue'
    'explain:explain the code at the end of a message'
    'gc:remove records that no mount, pod or restore needs'
    'migrate:rewrite manifests of other FlexVolume drivers to modekeep'\''s'
    'install:install or upgrade the driver on this node'
    'uninstall:remove the driver from this node'
    'csi:serve kubelet as a CSI driver'
    'nri:show volumes of any driver to a pod'\''s group, as the container runtime'\''s NRI plugin'
    'device-plugin:offer /dev/fuse to kubelet, for pods that run a FUSE daemon of their own'
    'completion:print a completion script for a shell'
    'version:print the version'
    'help:print this text, or a verb'\''s help'
  )
  if ((CURRENT == 2)); then
    _describe -t commands verb verbs
    return
  fi
  local verb=$words[2]
  shift words
  ((CURRENT--))
  case $verb in
    plan)
      _arguments \
        '(--fsgroup)--fsgroup=[the group, a decimal number]:G: ' \
        '(--group-access)--group-access=[keep (default)\: the group, and set-gid on directories, no permission bit; grant\: also rw for the group, and x on directories, as kubelet does]:keep|grant:(keep grant)' \
        '(--fs-group-change-policy)--fs-group-change-policy=[OnRootMismatch (default)\: no walk if the root has the group already; Always\: look at every inode]:OnRootMismatch|Always:(OnRootMismatch Always)' \
        '(--force)--force[also what users of the volume changed since an earlier walk, unless its inode number may have been used again; looks at every inode]' \
        '(--yes)--yes[also a directory of the system, such as /etc or all of /var/lib]' \
        '(--json)--json[one JSON document on stdout]' \
        '(-h --help)-h[this text]' \
        '(-h --help)--help[this text]' \
        '1:DIR:_files -/' \
        && return
      ;;
    apply)
      _arguments \
        '(--fsgroup)--fsgroup=[the group, a decimal number]:G: ' \
        '(--group-access)--group-access=[keep (default)\: the group, and set-gid on directories, no permission bit; grant\: also rw for the group, and x on directories, as kubelet does]:keep|grant:(keep grant)' \
        '(--fs-group-change-policy)--fs-group-change-policy=[OnRootMismatch (default)\: no walk if the root has the group already; Always\: look at every inode]:OnRootMismatch|Always:(OnRootMismatch Always)' \
        '(--force)--force[also what users of the volume changed since an earlier walk, unless its inode number may have been used again; looks at every inode]' \
        '(--yes)--yes[also a directory of the system, such as /etc or all of /var/lib]' \
        '(--json)--json[one JSON document on stdout]' \
        '(-h --help)-h[this text]' \
        '(-h --help)--help[this text]' \
        '1:DIR:_files -/' \
        && return
      ;;
    restore)
      _arguments \
        '(--dry-run)--dry-run[print what would be put back; change nothing]' \
        '(--force)--force[also put back what users of the volume changed since, unless its inode number may have been used again; set-id bits and capabilities return only to files whose content is still the recorded one. Also puts the records on another disk or image than the one that was walked, and says what differs]' \
        '(--json)--json[one JSON document on stdout]' \
        '(-h --help)-h[this text]' \
        '(-h --help)--help[this text]' \
        '1:DIR|VOLUME: _modekeep_records_or directories volumes' \
        && return
      ;;
    journal)
      _arguments \
        '(--output)--output=[export to this file; "-" (default)\: stdout]:FILE:_files' \
        '(--force)--force[export\: replace the file that --output names; import\: a file that others than root can write]' \
        '(--at)--at=[import\: the directory where the volume is, if it is not where it was on the other node]:DIR:_files -/' \
        '(--dry-run)--dry-run[import\: check all, and say what would be done; change nothing]' \
        '(--json)--json[one JSON document on stdout]' \
        '(-h --help)-h[this text]' \
        '(-h --help)--help[this text]' \
        '1:export|import:(export import)' \
        '2:VOLUME|DIR|FILE: _modekeep_records_or all volumes' \
        && return
      ;;
    status)
      _arguments \
        '(-n --namespace)-n+[only what is mounted for this namespace'\''s pods]:NAMESPACE: _modekeep_records namespaces' \
        '(-n --namespace)--namespace=[only what is mounted for this namespace'\''s pods]:NAMESPACE: _modekeep_records namespaces' \
        '(-o --format)-o+[a document (json, yaml), the table with every column, or names alone\: mount directories and volumes]:json|yaml|wide|name:(json yaml wide name)' \
        '(-o --format)--format=[a document (json, yaml), the table with every column, or names alone\: mount directories and volumes]:json|yaml|wide|name:(json yaml wide name)' \
        '(--watch)--watch[stay, and show it anew every two seconds; elsewhere than on a terminal each time that it changed]' \
        '(--prometheus)--prometheus[print metrics in Prometheus'\'' text format; calls are counted since the first run (docs/metrics.md)]' \
        '(--output)--output=[replace this file atomically, for node_exporter'\''s textfile collector]:FILE:_files' \
        '(--json)--json[one JSON document on stdout; with --watch one line each time]' \
        '(-h --help)-h[this text]' \
        '(-h --help)--help[this text]' \
        '1:[POD|MOUNT|VOLUME]: _modekeep_records pods mounts volumes' \
        && return
      ;;
    heal)
      _arguments \
        '(--dry-run)--dry-run[print what would be done; change nothing]' \
        '(--watch)--watch[stay, and repair whenever the mount table or a source changes; ends on SIGTERM]' \
        '(--kubelet-subpaths)--kubelet-subpaths[also repair kubelet'\''s own subPath mounts of ConfigMaps, Secrets and similar volumes whose source an update deleted; without it the container'\''s next start fails]' \
        '(--kubelet-dir)--kubelet-dir=[where kubelet keeps its pods (default\: /var/lib/kubelet)]:DIR:_files -/' \
        '(--listen)--listen=[with --watch\: answer HTTP there, /healthz while it runs and /readyz while its heals succeed; \:PORT is every address]:ADDRESS\:PORT: ' \
        '(--metrics)--metrics[with --listen\: also answer /metrics, in Prometheus'\'' text format (docs/metrics.md)]' \
        '(--answer-calls)--answer-calls[with --watch\: also answer kubelet'\''s FlexVolume calls, in a process that is ready; a mount then takes a fraction of the time]' \
        '(--json)--json[one JSON document on stdout; with --watch one line each time]' \
        '(-h --help)-h[this text]' \
        '(-h --help)--help[this text]' \
        && return
      ;;
    doctor)
      _arguments \
        '(--config)--config=[check this file in place of the node'\''s configuration, before it is installed]:FILE:_files' \
        '(--json)--json[one JSON document on stdout]' \
        '(-h --help)-h[this text]' \
        '(-h --help)--help[this text]' \
        && return
      ;;
    logs)
      _arguments \
        '(-f --follow)-f[show new lines as they are written, through rotations; ends on Ctrl-C]' \
        '(-f --follow)--follow[show new lines as they are written, through rotations; ends on Ctrl-C]' \
        '(-n --lines)-n+[only the last N lines (default\: all; with --follow 10)]:N: ' \
        '(-n --lines)--lines=[only the last N lines (default\: all; with --follow 10)]:N: ' \
        '(--since)--since=[only the lines that are younger than this, such as 1h, 30m, 2d or 1h30m]:TIME: ' \
        '(--failed)--failed[only the calls that failed or were refused]' \
        '(--pod)--pod=[only the lines about one pod\: its UID, or NAMESPACE/NAME]:POD: _modekeep_records pods' \
        '(--json)--json[the lines as they were written, one JSON document each]' \
        '(-h --help)-h[this text]' \
        '(-h --help)--help[this text]' \
        && return
      ;;
    support-bundle)
      _arguments \
        '(--output)--output=[this file, which must not exist; "-"\: stdout (default\: modekeep-support-HOST-TIME.tar in the working directory)]:FILE:_files' \
        '(--json)--json[one JSON document on stdout]' \
        '(-h --help)-h[this text]' \
        '(-h --help)--help[this text]' \
        && return
      ;;
    explain)
      _arguments \
        '(--json)--json[one JSON document on stdout]' \
        '(-h --help)-h[this text]' \
        '(-h --help)--help[this text]' \
        '1:[CODE]: _modekeep_records codes' \
        && return
      ;;
    gc)
      _arguments \
        '(--dry-run)--dry-run[print what would be removed; change nothing]' \
        '(--forget)--forget=[also remove the record of this volume (its name, or an unambiguous beginning of it), even if a restore is pending\: nothing of it can be put back then. Refused while its directory can be found or a pod uses it]:VOLUME: _modekeep_records volumes' \
        '(--json)--json[one JSON document on stdout]' \
        '(-h --help)-h[this text]' \
        '(-h --help)--help[this text]' \
        && return
      ;;
    migrate)
      _arguments \
        '(--json)--json[one JSON document on stdout]' \
        '(-h --help)-h[this text]' \
        '(-h --help)--help[this text]' \
        '1:FILE:_files' \
        && return
      ;;
    install)
      _arguments \
        '(--binary)--binary=[the executable to install (default\: this one)]:FILE:_files' \
        '(--sha256)--sha256=[refuse the executable unless this is its SHA-256 (default\: the one in SHA256SUMS beside it, as releases have it; where that is not there, none)]:SUM: ' \
        '(--config)--config=[install this as the node'\''s configuration, unless the driver finds a fault in it]:FILE:_files' \
        '(--node-root)--node-root=[read kubelet'\''s configuration below DIR\: for a container that has the node'\''s root directory there]:DIR:_files -/' \
        '(--any-kubelet)--any-kubelet[install in the directory of --plugin-dir although the kubelet that runs looks in another one]' \
        '(--plugin-dir)--plugin-dir=[kubelet'\''s volume plugin directory (default\: what the running kubelet uses)]:DIR:_files -/' \
        '(--dry-run)--dry-run[print every step and change nothing; needs no root]' \
        '(--root)--root=[work on the system below DIR (an image), where no kubelet is looked for]:DIR:_files -/' \
        '(--proc)--proc=[look for kubelets and mounts in this proc directory (default\: /proc)]:DIR:_files -/' \
        '(--json)--json[one JSON document on stdout]' \
        '(-h --help)-h[this text]' \
        '(-h --help)--help[this text]' \
        && return
      ;;
    uninstall)
      _arguments \
        '(--purge)--purge[remove state, logs and configuration too, the record of changed owners and modes included]' \
        '(--force)--force[even while volumes of modekeep/fs are mounted]' \
        '(--plugin-dir)--plugin-dir=[kubelet'\''s volume plugin directory (default\: what the running kubelet uses)]:DIR:_files -/' \
        '(--dry-run)--dry-run[print every step and change nothing; needs no root]' \
        '(--root)--root=[work on the system below DIR (an image), where no kubelet is looked for]:DIR:_files -/' \
        '(--proc)--proc=[look for kubelets and mounts in this proc directory (default\: /proc)]:DIR:_files -/' \
        '(--json)--json[one JSON document on stdout]' \
        '(-h --help)-h[this text]' \
        '(-h --help)--help[this text]' \
        && return
      ;;
    csi)
      _arguments \
        '(--kubelet-dir)--kubelet-dir=[kubelet'\''s --root-dir (default\: /var/lib/kubelet)]:DIR:_files -/' \
        '(--driver-name)--driver-name=[the driver'\''s name, in pods'\'' volumes and the CSIDriver object (default\: modekeep.csi)]:NAME: ' \
        '(--node-id)--node-id=[what kubelet'\''s CSINode object calls the node (default\: its host name)]:NAME: ' \
        '(--api-server)--api-server=[where the API server is\: the CSIDriver object is read there, which must say podInfoOnMount\: true]:HOST\:PORT: ' \
        '(--api-access)--api-access=[the directory with the files token and ca.crt of a service account that may read that object]:DIR:_files -/' \
        '(--probe)--probe[serve nothing\: ask the server that runs for an answer, and fail where none comes within 5 s]' \
        '(--json)--json[no effect\: the output is JSON in any case]' \
        '(-h --help)-h[this text]' \
        '(-h --help)--help[this text]' \
        && return
      ;;
    nri)
      _arguments \
        '(--socket)--socket=[the container runtime'\''s NRI socket (default\: /var/run/nri/nri.sock)]:PATH: ' \
        '(--cri-socket)--cri-socket=[the runtime'\''s CRI socket, asked for a pod'\''s groups where NRI does not tell them (default\: containerd'\''s)]:PATH: ' \
        '(--kubelet-dir)--kubelet-dir=[kubelet'\''s --root-dir (default\: /var/lib/kubelet)]:DIR:_files -/' \
        '(--plugin-index)--plugin-index=[two digits\: when the runtime asks it, among its plugins (default\: 10)]:NN: ' \
        '(--probe)--probe[do nothing\: look whether a plugin runs that the runtime knows, and fail where none does]' \
        '(--json)--json[no effect\: the output is JSON in any case]' \
        '(-h --help)-h[this text]' \
        '(-h --help)--help[this text]' \
        && return
      ;;
    device-plugin)
      _arguments \
        '(--devices)--devices=[how many containers of the node may use the device at once (default\: 100)]:N: ' \
        '(--kubelet-dir)--kubelet-dir=[the directory that has device-plugins/kubelet.sock (default\: /var/lib/kubelet, whatever kubelet'\''s --root-dir says)]:DIR:_files -/' \
        '(--json)--json[no effect\: the output is JSON in any case]' \
        '(-h --help)-h[this text]' \
        '(-h --help)--help[this text]' \
        && return
      ;;
    completion)
      _arguments \
        '(--offer)--offer=[in place of a script the names on record, one a line, as the scripts ask for them]:namespaces|pods|mounts|volumes|codes:(namespaces pods mounts volumes codes)' \
        '(--json)--json[one JSON document on stdout]' \
        '(-h --help)-h[this text]' \
        '(-h --help)--help[this text]' \
        '1:bash|zsh|fish:(bash zsh fish)' \
        && return
      ;;
    version)
      _arguments \
        '(--json)--json[one JSON document on stdout]' \
        '(-h --help)-h[this text]' \
        '(-h --help)--help[this text]' \
        && return
      ;;
    help)
      _arguments \
        '(--man)--man[print all help as a man page, roff on stdout]' \
        '(--json)--json[one JSON document on stdout]' \
        '(-h --help)-h[this text]' \
        '(-h --help)--help[this text]' \
        '1:[VERB]:{_describe -t commands verb verbs}' \
        && return
      ;;
  esac
}
if [[ $funcstack[1] == _modekeep ]]; then _modekeep "$@"; else compdef _modekeep modekeep; fi
