import { METRIC_FAMILIES, type MetricFamily } from '../../src/metrics/samples.ts'
import { between, code, table } from './table.ts'

const MARKS = ['<!-- Written by "npm run docs" from src/metrics/samples.ts. -->\n', '\n<!-- End. -->'] as const

/** Returns the page with the table of all metrics. @throws {Error} if the page has no place for it */
export function withMetricsTable(page: string): string {
  const rows = Object.entries<MetricFamily>(METRIC_FAMILIES).map(([name, { type, help, labels }]) => [
    code(name),
    type,
    Object.keys(labels).map(code).join(', '),
    [help, ...Object.entries(labels).flatMap(([label, values]) => (values ? listValues(label, values) : []))].join(' '),
  ])
  return between(page, MARKS, table(['metric', 'type', 'labels', 'meaning'], rows))
}

function listValues(label: string, values: readonly string[]): string {
  return `${code(label)}: ${values.map(code).join(', ')}.`
}
