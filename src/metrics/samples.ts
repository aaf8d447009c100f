import { SKIP_REASONS } from '../ownership/walk/report.ts'
import { HEAL_ACTIONS, isFaultyState, MOUNT_STATES } from '../repair/state.ts'

/** Series -> value. A series is a name with its labels in the text format. */
export type MetricSamples = Map<string, number>

export type MetricLabels = Readonly<Record<string, string>>

/** Formats `name{label="value"}`: labels in the given order, values escaped. */
export function formatSeries(name: string, labels: MetricLabels): string {
  const pairs = Object.entries(labels).map(([label, value]) => `${label}="${escapeLabel(value)}"`)
  return pairs.length === 0 ? name : `${name}{${pairs.join(',')}}`
}

function escapeLabel(value: string): string {
  return value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
}

export function addSample(samples: MetricSamples, name: MetricFamilyName, labels: MetricLabels, value = 1): void {
  addToSeries(samples, formatSeries(name, labels), value)
}

/** Adds one observation, or none, to a histogram's cumulative buckets, its sum and its count. */
export function observeDuration(
  samples: MetricSamples,
  name: MetricFamilyName,
  labels: MetricLabels,
  seconds: number,
  times: 0 | 1 = 1,
): void {
  for (const limit of DURATION_BUCKETS_SECONDS) {
    const le = Number.isFinite(limit) ? String(limit) : '+Inf'
    addToSeries(samples, formatSeries(`${name}_bucket`, { ...labels, le }), seconds <= limit ? times : 0)
  }
  addToSeries(samples, formatSeries(`${name}_sum`, labels), seconds * times)
  addToSeries(samples, formatSeries(`${name}_count`, labels), times)
}

function addToSeries(samples: MetricSamples, key: string, value: number): void {
  samples.set(key, (samples.get(key) ?? 0) + value)
}

/**
 * Creates every series with known labels at 0, because Prometheus sees no increase in a series that appears with a
 * value.
 * @param kind gauges show the present state, counters count events
 */
export function createZeroSamples(kind: 'gauges' | 'counters'): MetricSamples {
  const samples: MetricSamples = new Map()
  for (const [name, { type, labels: labelValues }] of Object.entries(METRIC_FAMILIES) as [
    MetricFamilyName,
    MetricFamily,
  ][]) {
    if ((type === 'gauge') !== (kind === 'gauges')) continue
    for (const labels of combineLabelValues(Object.entries(labelValues))) {
      if (type === 'histogram') observeDuration(samples, name, labels, 0, 0)
      else addSample(samples, name, labels, 0)
    }
  }
  return samples
}

function combineLabelValues(labels: readonly (readonly [string, readonly string[] | undefined])[]): MetricLabels[] {
  return labels.reduce<MetricLabels[]>(
    (all, [label, values]) => all.flatMap((one) => (values ?? []).map((value) => ({ ...one, [label]: value }))),
    [{}],
  )
}

/**
 * Formats the samples in Prometheus' text format 0.0.4, with families in the order of their table. Series of no family
 * are left out, because another version may have counted them.
 */
export function formatMetricSamples(samples: MetricSamples): string {
  const families = Map.groupBy(samples, ([key]) => key.replace(/(_bucket|_sum|_count)?(\{.*)?$/s, ''))
  const lines = Object.entries<MetricFamily>(METRIC_FAMILIES).flatMap(([name, { type, help }]) => {
    const samplesOfFamily = families.get(name)?.map(([key, value]) => `${key} ${value}`)
    return samplesOfFamily ? [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`, ...samplesOfFamily] : []
  })
  return lines.map((line) => `${line}\n`).join('')
}

/** Label -> its values; undefined: the node decides. All other series exist from the start. */
type MetricLabelValues = Readonly<Record<string, readonly string[] | undefined>>

/** A metric as scrapers see it. */
export interface MetricFamily {
  type: 'counter' | 'gauge' | 'histogram'
  help: string
  labels: MetricLabelValues
}

const createMetricFamily =
  (type: MetricFamily['type']) =>
  (help: string, labels: MetricLabelValues = {}): MetricFamily => ({ type, help, labels })
const [gauge, counter, histogram] = [
  createMetricFamily('gauge'),
  createMetricFamily('counter'),
  createMetricFamily('histogram'),
]

const COUNTED_VERBS = ['mount', 'unmount', 'apply', 'restore', 'heal', 'gc', 'map']
const WALKING_VERBS = ['mount', 'unmount', 'apply', 'restore']

/** Families in the order of the page. A name includes its base unit (Prometheus' conventions). */
export const METRIC_FAMILIES = {
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
    verb: COUNTED_VERBS,
    outcome: ['success', 'refused', 'failed'],
  }),
  modekeep_call_duration_seconds: histogram('How long calls took, without the start of the process.', {
    verb: COUNTED_VERBS,
  }),
  modekeep_walks_total: counter('Walks and restores that ended.', { verb: WALKING_VERBS }),
  modekeep_inodes_visited_total: counter('Inodes that walks and restores visited.', { verb: WALKING_VERBS }),
  modekeep_inodes_changed_total: counter('Inodes that walks changed and restores put back.', { verb: WALKING_VERBS }),
  modekeep_inodes_left_total: counter('Inodes that walks and restores left as they were, by reason.', {
    reason: SKIP_REASONS,
  }),
  modekeep_heals_total: counter('Mounts that heal found not healthy, by their state and by what it did.', {
    state: MOUNT_STATES.filter(isFaultyState),
    action: HEAL_ACTIONS,
  }),
  modekeep_sub_path_heals_total: counter('What heal did about subPath mounts of kubelet whose source was deleted.', {
    action: ['replaced', 'none'],
  }),
  modekeep_warnings_total: counter('Warnings in the log.', { verb: COUNTED_VERBS }),
  modekeep_log_gaps_total: counter(
    'Times that the log had been rotated away or emptied before it was read: calls are missing from the counters.',
  ),
  modekeep_calls_logged: gauge(
    '1 where logLevel lets successful calls into the log, from which the counters are made; else 0.',
  ),
} satisfies Record<string, MetricFamily>

export type MetricFamilyName = keyof typeof METRIC_FAMILIES

/** Seconds: from a repeated mount to the walk of a volume with millions of files. */
const DURATION_BUCKETS_SECONDS = [0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000, Number.POSITIVE_INFINITY]
