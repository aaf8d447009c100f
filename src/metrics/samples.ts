import { BUCKETS, FAMILIES, type Family, type FamilyName } from './families.ts'

/** Series -> value. A series is a name with its labels, as the text format writes it. */
export type Samples = Map<string, number>

export type Labels = Readonly<Record<string, string>>

/** `name{label="value"}`: labels in the order given, values escaped. */
export function series(name: string, labels: Labels): string {
  const pairs = Object.entries(labels).map(([label, value]) => `${label}="${escaped(value)}"`)
  return pairs.length === 0 ? name : `${name}{${pairs.join(',')}}`
}

function escaped(value: string): string {
  return value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
}

export function add(samples: Samples, name: FamilyName, labels: Labels, value = 1): void {
  addTo(samples, series(name, labels), value)
}

/** Counts one observation, or none, in a histogram's cumulative buckets, its sum and its count. */
export function observe(samples: Samples, name: FamilyName, labels: Labels, seconds: number, times: 0 | 1 = 1): void {
  for (const limit of BUCKETS) {
    const le = Number.isFinite(limit) ? String(limit) : '+Inf'
    addTo(samples, series(`${name}_bucket`, { ...labels, le }), seconds <= limit ? times : 0)
  }
  addTo(samples, series(`${name}_sum`, labels), seconds * times)
  addTo(samples, series(`${name}_count`, labels), times)
}

function addTo(samples: Samples, key: string, value: number): void {
  samples.set(key, (samples.get(key) ?? 0) + value)
}

/**
 * Every series whose labels are known beforehand, at 0: what appears with a value is no increase to Prometheus.
 * @param kind of what is so now, or of what is counted
 */
export function zeros(kind: 'gauges' | 'counters'): Samples {
  const samples: Samples = new Map()
  for (const [name, { type, labels: known }] of Object.entries(FAMILIES) as [FamilyName, Family][]) {
    if ((type === 'gauge') !== (kind === 'gauges')) continue
    for (const labels of combinations(Object.entries(known))) {
      if (type === 'histogram') observe(samples, name, labels, 0, 0)
      else add(samples, name, labels, 0)
    }
  }
  return samples
}

function combinations(labels: readonly (readonly [string, readonly string[] | undefined])[]): Labels[] {
  return labels.reduce<Labels[]>(
    (all, [label, values]) => all.flatMap((one) => (values ?? []).map((value) => ({ ...one, [label]: value }))),
    [{}],
  )
}

/**
 * The samples in Prometheus' text format 0.0.4, families in the order of their table. Series of no family are left out:
 * another version may have counted them.
 */
export function textOf(samples: Samples): string {
  const families = Map.groupBy(samples, ([key]) => key.replace(/(_bucket|_sum|_count)?(\{.*)?$/s, ''))
  const lines = Object.entries<Family>(FAMILIES).flatMap(([name, { type, help }]) => {
    const own = families.get(name)?.map(([key, value]) => `${key} ${value}`)
    return own ? [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`, ...own] : []
  })
  return lines.map((line) => `${line}\n`).join('')
}
