/** One sample, as a strict reader of Prometheus' text format sees it. */
export interface Sample {
  family: string
  name: string
  labels: Record<string, string>
  value: number
}

export interface Exposition {
  /** In the order of the text. */
  families: Map<string, { type: string; help: string }>
  samples: Sample[]
}

const NAME = /^[a-zA-Z_:][a-zA-Z0-9_:]*/
const LABEL = /^([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"/
const VALUE = /^ (-?\d+(?:\.\d+)?(?:e[+-]?\d+)?|\+Inf|NaN)$/

/**
 * Reads the format 0.0.4 and takes nothing that it does not allow: HELP, then TYPE, then samples, each family in one piece,
 * no series twice, histograms whole and cumulative.
 */
export function parseExposition(text: string): Exposition {
  if (!text.endsWith('\n')) throw new Error('the last line does not end in a newline')
  const families: Exposition['families'] = new Map()
  const samples: Sample[] = []
  const seen = new Set<string>()
  let current: { name: string; help: string; type?: string } | undefined
  for (const line of text.slice(0, -1).split('\n')) {
    const [, help, helpText = ''] = /^# HELP (\S+) (.+)$/.exec(line) ?? []
    const [, typed, type = ''] = /^# TYPE (\S+) (counter|gauge|histogram)$/.exec(line) ?? []
    if (help !== undefined) {
      if (families.has(help)) throw new Error(`${help} comes twice`)
      current = { name: help, help: helpText }
    } else if (typed !== undefined) {
      if (current?.name !== typed || current.type) throw new Error(`TYPE without its HELP: ${line}`)
      current.type = type
      families.set(typed, { type, help: current.help })
    } else {
      const sample = parseSample(line)
      if (!current?.type || !namesOf(current.name, current.type).includes(sample.name)) {
        throw new Error(`a sample outside of its family: ${line}`)
      }
      if (seen.has(line.slice(0, line.lastIndexOf(' ')))) throw new Error(`a series twice: ${line}`)
      seen.add(line.slice(0, line.lastIndexOf(' ')))
      samples.push({ ...sample, family: current.name })
    }
  }
  for (const [name, { type }] of families) if (type === 'histogram') checkHistogram(name, samples)
  return { families, samples }
}

function namesOf(family: string, type: string): string[] {
  return type === 'histogram' ? ['_bucket', '_sum', '_count'].map((part) => `${family}${part}`) : [family]
}

function parseSample(line: string): Omit<Sample, 'family'> {
  const name = NAME.exec(line)?.[0]
  if (name === undefined) throw new Error(`no sample: ${line}`)
  let rest = line.slice(name.length)
  const labels: Record<string, string> = {}
  if (rest.startsWith('{')) {
    for (rest = rest.slice(1); ; rest = rest.slice(1)) {
      const [all, label = '', value = ''] = LABEL.exec(rest) ?? []
      if (all === undefined || label in labels) throw new Error(`a bad label in: ${line}`)
      labels[label] = value.replace(/\\(.)/g, (_, character) => (character === 'n' ? '\n' : character))
      rest = rest.slice(all.length)
      if (rest.startsWith('}')) break
      if (!rest.startsWith(',')) throw new Error(`labels without an end: ${line}`)
    }
    rest = rest.slice(1)
  }
  const value = VALUE.exec(rest)?.[1]
  if (value === undefined) throw new Error(`a bad value in: ${line}`)
  return { name, labels, value: value === '+Inf' ? Number.POSITIVE_INFINITY : Number(value) }
}

function checkHistogram(name: string, samples: readonly Sample[]): void {
  const own = samples.filter(({ family }) => family === name)
  const groups = Map.groupBy(own, ({ labels: { le, ...others } }) => JSON.stringify(others))
  for (const [labels, group] of groups) {
    const buckets = group.filter((sample) => sample.name.endsWith('_bucket'))
    const bounds = buckets.map(({ labels: { le } }) => (le === '+Inf' ? Number.POSITIVE_INFINITY : Number(le)))
    const rising = (values: number[]) =>
      values.every((value, index) => index === 0 || value >= (values[index - 1] ?? 0))
    const count = group.find((sample) => sample.name.endsWith('_count'))?.value
    const isWhole = bounds.at(-1) === Number.POSITIVE_INFINITY && buckets.at(-1)?.value === count
    const counts = buckets.map(({ value }) => value)
    if (!isWhole || !rising(bounds) || !rising(counts) || !group.some((sample) => sample.name.endsWith('_sum'))) {
      throw new Error(`${name}${labels} is no whole histogram`)
    }
  }
}
