import * as fs from 'node:fs'
import { join } from 'node:path'
import { CHART_DIRECTORY } from '../chart/files.ts'
import { createValuesSchema, findValueSchema, formatValuesSchema } from '../chart/values-schema.ts'
import { formatMarkdownCode } from './table.ts'

/** driver/helm/modekeep/README.md, out of values.yaml and its schema. */
export function createChartPage(): string {
  const values = fs.readFileSync(join(CHART_DIRECTORY, 'values.yaml'), 'utf8')
  const { enum: distributions = [] } = findValueSchema(createValuesSchema(), 'distribution') ?? {}
  return `<!-- Written by "npm run docs" from values.yaml and scripts/chart. Change it there; a test compares. -->

# The chart

It creates the same objects as the [kustomizations](../../kubernetes/README.md), whose files it contains.
FlexVolume is always installed, because all doors use its executable. A cluster has one release.

All values with their defaults. Helm refuses other keys, also below \`config\` ([its keys](../../../docs/options.md#the-nodes-configuration)).
\`distribution\` is ${distributions.map((name) => formatMarkdownCode(String(name))).join(', ')}.

\`\`\`yaml
${values.trim()}
\`\`\`
`
}

/** Writes the generated files of the chart. */
export function writeChartPages(): void {
  fs.writeFileSync(join(CHART_DIRECTORY, 'README.md'), createChartPage())
  fs.writeFileSync(join(CHART_DIRECTORY, 'values.schema.json'), formatValuesSchema())
}
