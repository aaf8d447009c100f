import { resolve } from 'node:path'

export const PLUGIN = resolve(import.meta.dirname, '../../driver/kubernetes/kubectl-modekeep')

/** A kubectl that notes how it was called, and answers with the file of its pod and verb. */
export const RECORDING = `#!/bin/sh
printf '%s\\n' "$*" >>"$TOP/calls"
case "$*" in
  *'get pods'*) [ -e "$TOP/pods" ] || { echo 'Error: pods is forbidden' >&2; exit 1; }; exec cat "$TOP/pods" ;;
esac
pod=\${*%% --container*} pod=\${pod##* } verb=\${*##* modekeep } verb=\${verb%% *}
[ ! -e "$TOP/$pod.hangs" ] || exec sleep 300
if [ -e "$TOP/$pod.down" ]; then echo 'Error from server: error dialing backend: no route to host' >&2; exit 1; fi
[ ! -e "$TOP/$pod.$verb" ] || cat "$TOP/$pod.$verb"
[ ! -e "$TOP/$pod.$verb.status" ] || { read -r status <"$TOP/$pod.$verb.status"; [ "$status" != 0 ] || exit 0; echo "command terminated with exit code $status" >&2; exit "$status"; }
`
