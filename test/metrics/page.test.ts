import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { insertMetricsTable } from '../../scripts/docs/metrics-table.ts'
import { METRIC_FAMILIES, type MetricFamily } from '../../src/metrics/samples.ts'

const read = (path: string) => readFileSync(resolve(import.meta.dirname, '../..', path), 'utf8')
const page = read('docs/metrics.md')
const dashboard = JSON.parse(read('driver/observability/dashboard.json'))
const alerts = parse(read('driver/observability/alerts.yaml'))

/** Names as a query may use them, and the labels each has there. */
const known = new Map(
  Object.entries<MetricFamily>(METRIC_FAMILIES).flatMap(([name, { type, labels }]): [string, string[]][] => {
    const own = Object.keys(labels)
    if (type !== 'histogram') return [[name, own]]
    return [
      [`${name}_bucket`, [...own, 'le']],
      [`${name}_sum`, own],
      [`${name}_count`, own],
    ]
  }),
)
const OF_PROMETHEUS = ['instance']
const OF_NODE_EXPORTER = ['node_textfile_mtime_seconds']

/** What a query asks that is not there. */
function faultsOf(query: string): string[] {
  const names = [...new Set(query.match(/\b(?:modekeep|node)_\w+/g))]
  const unknown = names.filter((name) => !known.has(name) && !OF_NODE_EXPORTER.includes(name))
  const selected = [...query.matchAll(/(modekeep_\w+)\{([^}]*)\}/g)].flatMap(([, name = '', inside = '']) =>
    [...inside.matchAll(/(\w+)\s*(?:=~|!~|!=|=)\s*"([^"]*)"/g)].flatMap(([, label = '', value = '']) =>
      selectorFaults(name, label, value),
    ),
  )
  const all = names.flatMap((name) => known.get(name) ?? [])
  const grouped = [...query.matchAll(/\b(?:by|on) \(([^)]*)\)/g)].flatMap(([, list = '']) => list.split(', '))
  const ungrouped = grouped.filter((label) => ![...OF_PROMETHEUS, ...all].includes(label))
  return [...unknown, ...selected, ...ungrouped]
}

function selectorFaults(name: string, label: string, value: string): string[] {
  if (OF_PROMETHEUS.includes(label)) return []
  if (!known.get(name)?.includes(label)) return [`${name} has no label ${label}`]
  const values = Object.entries<MetricFamily>(METRIC_FAMILIES).find(([family]) => name.startsWith(family))?.[1].labels[
    label
  ]
  return values === undefined ? [] : value.split('|').filter((one) => !values.includes(one))
}

describe('docs/metrics.md', () => {
  it('the table of metrics in docs/metrics.md equals the output of "npm run docs"', () => {
    expect(page).toBe(insertMetricsTable(page))
  })

  it('docs/metrics.md lists exactly the exported metrics, with type and labels', () => {
    const rows = [...page.matchAll(/^\| `(modekeep_\w+)` \| (\w+) \|([^|]*)\|/gm)]
    const documented = rows.map(([, name, type, labels]) => [name, type, labels?.match(/\w+/g) ?? []])
    const real = Object.entries<MetricFamily>(METRIC_FAMILIES).map(([name, { type, labels }]) => [
      name,
      type,
      Object.keys(labels),
    ])
    expect(documented).toEqual(real)
  })

  it('docs/metrics.md names the values of labels', () => {
    const values = Object.entries<MetricFamily>(METRIC_FAMILIES).flatMap(([name, { labels }]) =>
      Object.entries(labels).flatMap(([label, list]) => (label === 'reason' ? [] : (list ?? []).map((v) => [name, v]))),
    )
    expect(values.filter(([, value]) => !page.includes(`\`${value}\``))).toEqual([])
  })

  it('docs/metrics.md has a remedy for every alert, and no other remedy', () => {
    const rows = [...page.matchAll(/^\| `(Modekeep\w+)` \|/gm)].map(([, name]) => name)
    const rules = alerts.groups.flatMap((group: { rules: { alert: string }[] }) => group.rules)
    expect(rows).toEqual(rules.map(({ alert }: { alert: string }) => alert))
  })
})

describe('PromQL queries', () => {
  it.each([
    ['modekeep_gone_total', ['modekeep_gone_total']],
    ['modekeep_daemons{state!="lost"}', ['lost']],
    ['modekeep_daemons{pod="x"}', ['modekeep_daemons has no label pod']],
    ['sum by (pod) (modekeep_daemons)', ['pod']],
  ])('a query for a missing metric or label is reported: %s', (query, faults) => {
    expect(faultsOf(query)).toEqual(faults)
  })

  const targets: { title: string; query: string }[] = dashboard.panels.flatMap(
    ({ title, targets }: { title: string; targets: { expr: string }[] }) =>
      targets.map(({ expr }) => ({ title, query: expr })),
  )
  const rules: { title: string; query: string }[] = alerts.groups.flatMap(
    ({ rules }: { rules: { alert: string; expr: string }[] }) =>
      rules.map(({ alert, expr }) => ({ title: alert, query: expr })),
  )

  it('the alerts and the dashboard have queries', () => {
    expect([targets.length, rules.length].every((count) => count > 5)).toBe(true)
    expect(faultsOf(dashboard.templating.list.map(({ definition = '' }) => definition).join())).toEqual([])
  })

  it.each([...targets, ...rules])('the query of "$title" uses existing metrics and labels: $query', ({ query }) => {
    expect(query).toMatch(/modekeep_|node_textfile/)
    expect(faultsOf(query)).toEqual([])
  })

  it('the queries of the dashboard use every metric', () => {
    const all = targets.map(({ query }) => query).join('\n')
    expect(Object.keys(METRIC_FAMILIES).filter((name) => !all.includes(name))).toEqual([])
  })
})

it('the panels of the dashboard do not overlap', () => {
  const cells = dashboard.panels.flatMap(
    ({ gridPos: { x, y, w, h } }: { gridPos: Record<'x' | 'y' | 'w' | 'h', number> }) =>
      Array.from({ length: w * h }, (_, index) => `${x + (index % w)},${y + Math.floor(index / w)}`),
  )
  expect(new Set(cells).size).toBe(cells.length)
  expect(cells.filter((cell: string) => Number(cell.split(',')[0]) >= 24)).toEqual([])
})
