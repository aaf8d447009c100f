import type { Work } from './command.ts'

const OVERVIEW = `modekeep gives a directory's files to a group without damaging them, and puts back what it changed.

By hand, as root:
  modekeep plan DIR --fsgroup G      say what apply would change, and what kubelet would; changes nothing
  modekeep apply DIR --fsgroup G     give DIR to group G, as a pod's mount with ownership: walk does
  modekeep restore DIR               put back all that modekeep has changed in DIR
  modekeep status                    what is mounted, how groups were given, what is not well
  modekeep heal                      mend mounts whose source, daemon or layers went wrong
  modekeep device-plugin             offer /dev/fuse to kubelet, for pods that run a FUSE daemon of their own
  modekeep help [VERB]               this text, or a verb's
  modekeep version                   the version

For kubelet: init, mount DIR JSON, unmount DIR.

Example:
  modekeep plan /srv/volumes/data --fsgroup 2000
`

const WALK_OPTIONS = `  --fsgroup G            the group, a decimal number
  --group-access A       keep (default): the group, and set-gid on directories, no permission bit
                         grant: also rw for the group, and x on directories, as kubelet does
  --policy P             OnRootMismatch (default): no walk where the root has the group already
                         Always: look at every inode
  --json                 one JSON document on stdout
`

const TOPICS: Readonly<Record<Work['verb'], string>> = {
  plan: `modekeep plan DIR --fsgroup G [options]

Says what apply would change in DIR, and beside it what kubelet's own walk would. Changes nothing.

${WALK_OPTIONS}
Example:
  modekeep plan /srv/volumes/data --fsgroup 2000 --policy Always
`,
  apply: `modekeep apply DIR --fsgroup G [options]

Gives DIR to a group, recording what was there before. May be interrupted and repeated. It is refused while a pod
with another group uses DIR.

${WALK_OPTIONS}
Example:
  modekeep apply /srv/volumes/data --fsgroup 2000
`,
  restore: `modekeep restore DIR [--json]

Puts groups, modes and capabilities back to what they were before modekeep changed them. What its users changed since
is named and left. It is refused while a pod uses DIR with a group that modekeep gave.

  --json                 one JSON document on stdout

Example:
  modekeep restore /srv/volumes/data
`,
  status: `modekeep status [--json | --prometheus [--output FILE]]

Lists what modekeep has mounted on this node: the pod, the source, the group and how it was given (walk: inodes were
changed; idmap: the mount shows another group; none), since when, and whether heal would find something to mend.
Changes nothing.

  --json                 one JSON document on stdout
  --prometheus           metrics in Prometheus' text format, with the counts of calls since it was first run
  --output FILE          into this file, exchanged at once, for node_exporter's textfile collector

Example:
  modekeep status
  modekeep status --prometheus --output /var/lib/node_exporter/modekeep.prom
`,
  heal: `modekeep heal [options]

Mends modekeep's mounts without waiting for kubelet's next call: a source that was replaced or deleted, a mount that
does not answer or is gone, layers mounted over it, calls that died half way, records of pods that are gone. A mount in
use is replaced without a gap. What modekeep does not know is left as it is.

  --dry-run              say what would be done, and do nothing
  --watch                stay, and mend whenever the mount table or a source changes; ends on SIGTERM
  --kubelet-subpaths     also kubelet's own subPath mounts of ConfigMaps, Secrets and the like whose source was deleted
                         by an update: the container's next start would fail
  --kubelet-dir DIR      where kubelet keeps its pods (default: /var/lib/kubelet)
  --json                 one JSON document on stdout; with --watch one line each time

Example:
  modekeep heal --dry-run --kubelet-subpaths
`,
}

/** @param topic a verb by hand; undefined or another: the overview */
export function helpText(topic: string | undefined): string {
  return topic !== undefined && Object.hasOwn(TOPICS, topic) ? TOPICS[topic as keyof typeof TOPICS] : OVERVIEW
}
