import { BUCKETS, FAMILIES, type FamilyName, type MetricFamily } from './families.ts'

/** Series -> value. A series is a name with its labels in the text format. */
export type Samples = Map<string, number>

export type Labels = Readonly<Record<string, string>>

/** Formats `name{label="value"}`: labels in the given order, values escaped. */
export function formatSeries(name: string, labels: Labels): string {
  const pairs = Object.entries(labels).map(([label, value]) => `${label}="${escapeLabel(value)}"`)
  return pairs.length === 0 ? name : `${name}{${pairs.join(',')}}`
}

function escapeLabel(value: string): string {
  return value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
}

export function addSample(samples: Samples, name: FamilyName, labels: Labels, value = 1): void {
  addToSeries(samples, formatSeries(name, labels), value)
}

/** Adds one observation, or none, to a histogram's cumulative buckets, its sum and its count. */
export function observeDuration(
  samples: Samples,
  name: FamilyName,
  labels: Labels,
  seconds: number,
  times: 0 | 1 = 1,
): void {
  for (const limit of BUCKETS) {
    const le = Number.isFinite(limit) ? String(limit) : '+Inf'
    addToSeries(samples, formatSeries(`${name}_bucket`, { ...labels, le }), seconds <= limit ? times : 0)
  }
  addToSeries(samples, formatSeries(`${name}_sum`, labels), seconds * times)
  addToSeries(samples, formatSeries(`${name}_count`, labels), times)
}

function addToSeries(samples: Samples, key: string, value: number): void {
  samples.set(key, (samples.get(key) ?? 0) + value)
}

/**
 * Creates every series with known labels at 0, because Prometheus sees no increase in a series that appears with a
 * value.
 * @param kind gauges show the present state, counters count events
 */
export function createZeroSamples(kind: 'gauges' | 'counters'): Samples {
  const samples: Samples = new Map()
  for (const [name, { type, labels: labelValues }] of Object.entries(FAMILIES) as [FamilyName, MetricFamily][]) {
    if ((type === 'gauge') !== (kind === 'gauges')) continue
    for (const labels of combineLabels(Object.entries(labelValues))) {
      if (type === 'histogram') observeDuration(samples, name, labels, 0, 0)
      else addSample(samples, name, labels, 0)
    }
  }
  return samples
}

function combineLabels(labels: readonly (readonly [string, readonly string[] | undefined])[]): Labels[] {
  return labels.reduce<Labels[]>(
    (all, [label, values]) => all.flatMap((one) => (values ?? []).map((value) => ({ ...one, [label]: value }))),
    [{}],
  )
}

/**
 * Formats the samples in Prometheus' text format 0.0.4, with families in the order of their table. Series of no family
 * are left out, because another version may have counted them.
 */
export function formatSamples(samples: Samples): string {
  const families = Map.groupBy(samples, ([key]) => key.replace(/(_bucket|_sum|_count)?(\{.*)?$/s, ''))
  const lines = Object.entries<MetricFamily>(FAMILIES).flatMap(([name, { type, help }]) => {
    const samplesOfFamily = families.get(name)?.map(([key, value]) => `${key} ${value}`)
    return samplesOfFamily ? [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`, ...samplesOfFamily] : []
  })
  return lines.map((line) => `${line}\n`).join('')
}
