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

/** Counts one observation in a histogram's cumulative buckets, its sum and its count. */
export function observe(samples: Samples, name: FamilyName, labels: Labels, seconds: number): void {
  for (const [key, isIn] of bucketsOf(name, labels, seconds)) addTo(samples, key, isIn ? 1 : 0)
  addTo(samples, series(`${name}_sum`, labels), seconds)
  addTo(samples, series(`${name}_count`, labels), 1)
}

function bucketsOf(name: FamilyName, labels: Labels, seconds: number): [string, boolean][] {
  const key = (le: string) => series(`${name}_bucket`, { ...labels, le })
  return [...BUCKETS.map((le): [string, boolean] => [key(String(le)), seconds <= le]), [key('+Inf'), true]]
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
  for (const [name, family] of Object.entries(FAMILIES) as [FamilyName, Family][]) {
    if ((family.type === 'gauge') !== (kind === 'gauges')) continue
    for (const labels of combinations(Object.entries(family.labels))) {
      if (family.type !== 'histogram') add(samples, name, labels, 0)
      else {
        for (const [key] of bucketsOf(name, labels, 0)) samples.set(key, 0)
        for (const part of ['sum', 'count']) samples.set(series(`${name}_${part}`, labels), 0)
      }
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
  return Object.entries<Family>(FAMILIES)
    .flatMap(([name, { type, help }]) => {
      const own = [...samples].filter(([key]) => isOf(name, type, key))
      if (own.length === 0) return []
      const lines = own.map(([key, value]) => `${key} ${value}\n`)
      return [`# HELP ${name} ${help}\n`, `# TYPE ${name} ${type}\n`, ...lines]
    })
    .join('')
}

function isOf(family: string, type: Family['type'], key: string): boolean {
  const name = key.split('{', 1)[0]
  return type === 'histogram' ? PARTS.some((part) => name === `${family}${part}`) : name === family
}

const PARTS = ['_bucket', '_sum', '_count']
