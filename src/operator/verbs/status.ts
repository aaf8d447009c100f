import { status as run, type StatusCommand, type StatusDocument } from '../actions/status.ts'
import { statusLines } from '../text/status.ts'
import { type Arguments, JSON_TEXT, type Work } from './form.ts'

export const status: Work<StatusCommand, StatusDocument> = {
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
  },
  examples: ['modekeep status', 'modekeep status --prometheus --output /var/lib/node_exporter/modekeep.prom'],
  isLooking: true,
  read: (args) => ({ verb: 'status', metrics: metricsOf(args) }),
  run,
  lines: (document) => statusLines(document, Date.now()),
}

function metricsOf({ given, faults }: Arguments): StatusCommand['metrics'] {
  const isWanted = given.has('prometheus')
  if (given.has('output') && !isWanted) faults.push('--output is for --prometheus: give both, or leave it out')
  if (given.has('json') && isWanted) faults.push('--json and --prometheus are two forms: keep one')
  return isWanted ? { output: given.get('output') } : undefined
}
