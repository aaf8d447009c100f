import { HELP_TEXT, JSON_TEXT, type VerbForm } from './form.ts'

export const NODE_VERBS = {
  status: {
    operands: '',
    summary: 'what is mounted, how groups were given, what is not well',
    text: [
      'Lists what modekeep has mounted on this node: the pod, the source, the group and how it was given (walk: inodes ' +
        'were changed; idmap: the mount shows another group; option: by mount options; none), since when, and its ' +
        'state (healthy, missing, stale, orphaned, interrupted, unknown, busy: docs/commands.md). Below, the volumes that ' +
        'walks have changed, with pending restores, and how far a running walk or restore is. Changes nothing.',
    ],
    options: {
      prometheus:
        "metrics in Prometheus' text format, with the counts of calls since it was first run (docs/metrics.md)",
      output: "into this file, exchanged at once, for node_exporter's textfile collector",
      json: JSON_TEXT,
      help: HELP_TEXT,
    },
    examples: ['modekeep status', 'modekeep status --prometheus --output /var/lib/node_exporter/modekeep.prom'],
  },
  heal: {
    operands: '',
    summary: 'repair mounts whose source, daemon or layers changed',
    text: [
      "Repairs modekeep's mounts without waiting for kubelet's next call: a source that was replaced or deleted, a mount " +
        'that does not respond or is gone, layers mounted over it, interrupted calls, records of deleted pods. A mount in ' +
        'use is replaced without a gap. What modekeep does not know is left as it is.',
    ],
    options: {
      'dry-run': 'say what would be done, and do nothing',
      watch: 'stay, and mend whenever the mount table or a source changes; ends on SIGTERM',
      'kubelet-subpaths':
        "also kubelet's own subPath mounts of ConfigMaps, Secrets and the like whose source was deleted by an update: " +
        "the container's next start would fail",
      'kubelet-dir': 'where kubelet keeps its pods (default: /var/lib/kubelet)',
      json: `${JSON_TEXT}; with --watch one line each time`,
      help: HELP_TEXT,
    },
    examples: ['modekeep heal --dry-run --kubelet-subpaths'],
    failure: 'not every mount could be mended',
  },
  doctor: {
    operands: '',
    summary: 'check the node: kernel, helpers, kubelet, permissions, records',
    text: [
      'Checks all that modekeep needs on this node and says of each finding what to do: what the kernel can (each ' +
        'system call is really tried, on nothing of the node), the system-call layer against Node, helper programs, ' +
        "kubelet's plugin directory and the driver in it, the configuration, owners and permissions, free space, " +
        'records without mounts, mounts without records, what interrupted calls left. Changes nothing.',
    ],
    options: { json: JSON_TEXT, help: HELP_TEXT },
    examples: ['modekeep doctor || echo "this node needs a look"'],
    failure: 'there is a fault (a warning alone is no failure)',
  },
  logs: {
    operands: '',
    summary: "what kubelet's calls and these commands did",
    text: [
      "Shows the node's log, the rotated files first: when, which call, how it ended and how long it took, for which " +
        'pod, and why it failed.',
    ],
    options: {
      follow: 'go on with what is logged from now on, also when the file is rotated; ends on Ctrl-C',
      lines: 'only the last N lines (default: all; with --follow 10)',
      pod: 'only what is about one pod: its UID, or NAMESPACE/NAME',
      json: 'the lines as they were written, one JSON document each',
      help: HELP_TEXT,
    },
    examples: ['modekeep logs --follow', 'modekeep logs --pod shop/cart-0 --lines 20'],
  },
  gc: {
    operands: '',
    summary: 'remove records that no mount, pod or restore needs',
    text: [
      'Removes what was left behind: records of mounts whose pod or boot is gone, journals that hold nothing any more, ' +
        'those of directories that were deleted when a symlink was swapped, reservations and stages of interrupted calls. ' +
        'The pending restore of a pod that was deleted without an unmount is run first. A volume with a pending restore is ' +
        'kept, and one that restore could still put back; it says what was kept and why.',
    ],
    options: {
      'dry-run': 'say what would be removed, and remove nothing',
      forget:
        'also give up what is recorded of this volume, restore pending or not: nothing of it can be put back then. Refused while ' +
        'its directory is to be found, or a pod uses it',
      json: JSON_TEXT,
      help: HELP_TEXT,
    },
    examples: ['modekeep gc --dry-run', 'modekeep gc'],
    failure: 'something could not be removed',
  },
} as const satisfies Readonly<Record<string, VerbForm>>
