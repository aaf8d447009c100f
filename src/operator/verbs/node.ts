import { HELP_TEXT, JSON_TEXT, type VerbForm } from './form.ts'

export const NODE_VERBS = {
  status: {
    operands: '',
    summary: 'list mounts, how their groups were given, and their state',
    text: [
      'Lists what modekeep has mounted on this node: pod, source, group, age and state (healthy, missing, stale, ' +
        'orphaned, interrupted, unknown, busy: docs/commands.md). Ownership says how the group was given. walk: inodes ' +
        'were changed. idmap: the mount shows another group. option: mount options give it.',
      'Below are the volumes that walks have changed, with pending restores and the progress of running walks. Changes ' +
        'nothing.',
    ],
    options: {
      prometheus: "print metrics in Prometheus' text format; calls are counted since the first run (docs/metrics.md)",
      output: "replace this file atomically, for node_exporter's textfile collector",
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
        'that is missing or does not respond, layers mounted over it, interrupted calls, records of deleted pods.',
      'A mount in use is replaced without a gap. Mounts that modekeep does not know stay as they are.',
    ],
    options: {
      'dry-run': 'print what would be done; change nothing',
      watch: 'stay, and repair whenever the mount table or a source changes; ends on SIGTERM',
      'kubelet-subpaths':
        "also repair kubelet's own subPath mounts of ConfigMaps, Secrets and similar volumes whose source an update " +
        "deleted; without it the container's next start fails",
      'kubelet-dir': 'where kubelet keeps its pods (default: /var/lib/kubelet)',
      json: `${JSON_TEXT}; with --watch one line each time`,
      help: HELP_TEXT,
    },
    examples: ['modekeep heal --dry-run --kubelet-subpaths'],
    failure: 'a mount could not be repaired',
  },
  doctor: {
    operands: '',
    summary: 'check the node: kernel, helpers, kubelet, permissions, records',
    text: [
      "Checks what modekeep needs on this node: the kernel's features, modekeep's system calls compared with Node's, " +
        "helper programs, kubelet's plugin directory and the driver in it, the configuration, owners and permissions, " +
        'free space, records without mounts, mounts without records, and what interrupted calls left.',
      'Each system call is really made, on nothing of the node. Each finding says what to do. Changes nothing.',
    ],
    options: { json: JSON_TEXT, help: HELP_TEXT },
    examples: ['modekeep doctor || echo "this node needs a look"'],
    failure: 'there is a fault (a warning alone is no failure)',
  },
  logs: {
    operands: '',
    summary: "show what kubelet's calls and these commands did",
    text: [
      "Shows the node's log, the rotated files first: time, verb, outcome, duration and pod of each call, and why it " +
        'failed.',
    ],
    options: {
      follow: 'show new lines as they are written, through rotations; ends on Ctrl-C',
      lines: 'only the last N lines (default: all; with --follow 10)',
      pod: 'only the lines about one pod: its UID, or NAMESPACE/NAME',
      json: 'the lines as they were written, one JSON document each',
      help: HELP_TEXT,
    },
    examples: ['modekeep logs --follow', 'modekeep logs --pod shop/cart-0 --lines 20'],
  },
  gc: {
    operands: '',
    summary: 'remove records that no mount, pod or restore needs',
    text: [
      'Removes what nothing needs any more: records of mounts whose pod or boot is gone, empty journals, journals of ' +
        'directories that an atomic update deleted, reservations and stages of interrupted calls.',
      'A pod that was deleted without an unmount gets its pending restore first. Volumes with a pending restore are ' +
        'kept, and so is everything that restore could still put back. It says what was kept and why.',
    ],
    options: {
      'dry-run': 'print what would be removed; change nothing',
      forget:
        'also remove the record of this volume, even if a restore is pending: nothing of it can be put back then. ' +
        'Refused while its directory can be found or a pod uses it',
      json: JSON_TEXT,
      help: HELP_TEXT,
    },
    examples: ['modekeep gc --dry-run', 'modekeep gc'],
    failure: 'something could not be removed',
  },
} as const satisfies Readonly<Record<string, VerbForm>>
