import { spawnSync } from 'node:child_process'
import { join, resolve } from 'node:path'

const MANIFESTS = resolve(import.meta.dirname, '../../driver/kubernetes')

export const PLUGIN = join(MANIFESTS, 'kubectl-modekeep')

export const PLUGIN_COMPLETION = join(MANIFESTS, 'kubectl_complete-modekeep')

/**
 * A kubectl that records how it was called, and answers with the file of its pod and verb. For `kubectl get RESOURCE` it
 * answers with the file get.RESOURCE, or fails with the message in the file failure.RESOURCE.
 */
export const RECORDING = `#!/bin/sh
printf '%s\\n' "$*" >>"$TOP/calls"
case "$*" in
  *'get pods'*) [ -e "$TOP/pods" ] || { echo 'Error: pods is forbidden' >&2; exit 1; }; exec cat "$TOP/pods" ;;
  *'config view'*) [ -e "$TOP/namespace" ] || { echo 'error: current-context must exist in order to minify' >&2; exit 1; }; exec cat "$TOP/namespace" ;;
  *'config get-contexts'*) exec cat "$TOP/contexts" ;;
  'get '* | *' get '*)
    resource=\${*#*get } resource=\${resource%% *} resource=\${resource%%.*}
    [ ! -e "$TOP/failure.$resource" ] || { cat "$TOP/failure.$resource" >&2; exit 1; }
    exec cat "$TOP/get.$resource" ;;
esac
pod=\${*%% --container*} pod=\${pod##* } verb=\${*##* modekeep } verb=\${verb%% *}
[ ! -e "$TOP/$pod.hangs" ] || exec sleep 300
if [ -e "$TOP/$pod.down" ]; then echo 'Error from server: error dialing backend: no route to host' >&2; exit 1; fi
[ ! -e "$TOP/$pod.$verb" ] || cat "$TOP/$pod.$verb"
[ ! -e "$TOP/$pod.$verb.status" ] || { read -r status <"$TOP/$pod.$verb.status"; [ "$status" != 0 ] || exit 0; echo "command terminated with exit code $status" >&2; exit "$status"; }
`

/** Programs and arguments that run the plugin: each shell of the platforms on which kubectl runs. */
const SHELLS = [
  ['sh', []],
  ['dash', ['dash']],
  ['bash', ['bash', '--posix']],
  ['busybox', ['busybox', 'sh']],
] as const

/** The shells with the reason for a test's title if the shell is not installed, which is empty otherwise. */
export const SHELL_CASES = SHELLS.map(([name, command]) => {
  const { status } = spawnSync(name, name === 'busybox' ? ['sh', '-c', ':'] : ['-c', ':'])
  return { name, command, missing: status === 0 ? '' : ` (skipped: there is no ${name})` }
})
