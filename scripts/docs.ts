import { readFileSync, writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { writeChartPages } from './docs/chart-page.ts'
import { insertMetricsTable } from './docs/metrics-table.ts'
import { insertDriverTables } from './docs/migration-tables.ts'
import { createOptionsPage } from './docs/options-page.ts'
import { createSessionPicture, SESSION_PICTURE_FILE } from './docs/picture.ts'
import { createTestResultsTable, insertResultsTable, readTestResults } from './docs/results.ts'
import { createTroubleshootingPage } from './docs/troubleshooting-page.ts'

// Pages that are made out of the code, and of what runs have left. A test says when one is stale.
writeFileSync(resolve(import.meta.dirname, '../docs/options.md'), createOptionsPage())
writeFileSync(resolve(import.meta.dirname, '../docs/troubleshooting.md'), createTroubleshootingPage())
writeChartPages()
const README_FILE = resolve(import.meta.dirname, '../README.md')
writeFileSync(
  README_FILE,
  insertResultsTable(readFileSync(README_FILE, 'utf8'), createTestResultsTable(readTestResults())),
)
const MIGRATION_PAGE_FILE = resolve(import.meta.dirname, '../docs/migration.md')
writeFileSync(MIGRATION_PAGE_FILE, insertDriverTables(readFileSync(MIGRATION_PAGE_FILE, 'utf8')))
const METRICS_PAGE_FILE = resolve(import.meta.dirname, '../docs/metrics.md')
writeFileSync(METRICS_PAGE_FILE, insertMetricsTable(readFileSync(METRICS_PAGE_FILE, 'utf8')))
if (process.getuid?.() === 0) writeFileSync(SESSION_PICTURE_FILE, createSessionPicture())
else console.error('docs/session.svg stays as it is: its session needs mounts, so root; run "sudo npm run docs"')
