import { HEAL_ACTIONS, isUnwell, MOUNT_STATES } from '../heal/state.ts'
import { SKIP_REASONS } from '../ownership/walk/report.ts'

/** Label -> its values; undefined: the node decides. All other series exist from the start. */
type LabelValues = Readonly<Record<string, readonly string[] | undefined>>

/** A metric as scrapers see it. */
export interface MetricFamily {
  type: 'counter' | 'gauge' | 'histogram'
  help: string
  labels: LabelValues
}

const createFamily =
  (type: MetricFamily['type']) =>
  (help: string, labels: LabelValues = {}): MetricFamily => ({ type, help, labels })
const [gauge, counter, histogram] = [createFamily('gauge'), createFamily('counter'), createFamily('histogram')]

const CALLS = ['mount', 'unmount', 'apply', 'restore', 'heal', 'gc', 'map']
const WALKS = ['mount', 'unmount', 'apply', 'restore']

/** Families in the order of the page. A name includes its base unit (Prometheus' conventions). */
export const FAMILIES = {
  modekeep_info: gauge('Always 1: the version of modekeep.', { version: undefined }),
  modekeep_mounts: gauge('Volumes on record as mounted, by kind, how their group is given, and their state.', {
    type: undefined,
    ownership: undefined,
    state: undefined,
  }),
  modekeep_daemons: gauge('FUSE daemons that serve volumes.', { state: ['alive', 'stopped', 'dead'] }),
  modekeep_walks_running: gauge('Walks, restores and mappings of volumes that are under way.'),
  modekeep_restores_pending: gauge('Volumes with a pending restore: still mounted, or overdue.', {
    state: ['mounted', 'overdue'],
  }),
  modekeep_container_volumes: gauge(
    'Volumes of containers that asked for a group: created and not started yet, shown to it, without it, or of unreadable records.',
    { state: ['created', 'mapped', 'without'] },
  ),
  modekeep_plugins: gauge(
    "The container runtime's plugin (modekeep nri), where one was started: asked by it, or away.",
    {
      state: ['asked', 'away'],
    },
  ),
  modekeep_calls_total: counter('Calls that ended, by verb and outcome.', {
    verb: CALLS,
    outcome: ['success', 'refused', 'failed'],
  }),
  modekeep_call_duration_seconds: histogram('How long calls took, without the start of the process.', { verb: CALLS }),
  modekeep_walks_total: counter('Walks and restores that ended.', { verb: WALKS }),
  modekeep_inodes_visited_total: counter('Inodes that walks and restores looked at.', { verb: WALKS }),
  modekeep_inodes_changed_total: counter('Inodes that walks changed and restores put back.', { verb: WALKS }),
  modekeep_inodes_left_total: counter('Inodes that walks and restores left as they were, by reason.', {
    reason: SKIP_REASONS,
  }),
  modekeep_heals_total: counter('Mounts that heal found not healthy, by their state and by what it did.', {
    state: MOUNT_STATES.filter(isUnwell),
    action: HEAL_ACTIONS,
  }),
  modekeep_sub_path_heals_total: counter('What heal did about subPath mounts of kubelet whose source was deleted.', {
    action: ['replaced', 'none'],
  }),
  modekeep_warnings_total: counter('Warnings in the log.', { verb: CALLS }),
  modekeep_log_gaps_total: counter(
    'Times that the log had been rotated away or emptied before it was read: calls are missing from the counters.',
  ),
  modekeep_calls_logged: gauge(
    '1 where logLevel lets successful calls into the log, from which the counters are made; else 0.',
  ),
} satisfies Record<string, MetricFamily>

export type FamilyName = keyof typeof FAMILIES

/** Seconds: from a repeated mount to the walk of a volume with millions of files. */
export const BUCKETS = [0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000, Number.POSITIVE_INFINITY]
