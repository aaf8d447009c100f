import { METRIC_FAMILIES, type MetricFamily } from '../../src/metrics/samples.ts'
import { formatMarkdownCode, formatMarkdownTable, replaceBetweenMarks } from './table.ts'

const METRICS_TABLE_MARKS = [
  '<!-- Written by "npm run docs" from src/metrics/samples.ts. -->\n',
  '\n<!-- End. -->',
] as const

/** Returns the page with the table of all metrics. @throws {Error} if the page has no place for it */
export function insertMetricsTable(page: string): string {
  const rows = Object.entries<MetricFamily>(METRIC_FAMILIES).map(([name, { type, help, labels }]) => [
    formatMarkdownCode(name),
    type,
    Object.keys(labels).map(formatMarkdownCode).join(', '),
    [
      help,
      ...Object.entries(labels).flatMap(([label, values]) => (values ? formatLabelValues(label, values) : [])),
    ].join(' '),
  ])
  return replaceBetweenMarks(
    page,
    METRICS_TABLE_MARKS,
    formatMarkdownTable(['metric', 'type', 'labels', 'meaning'], rows),
  )
}

function formatLabelValues(label: string, values: readonly string[]): string {
  return `${formatMarkdownCode(label)}: ${values.map(formatMarkdownCode).join(', ')}.`
}
