import { readFileSync, writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { withMetricsTable } from './docs/metrics-table.ts'
import { withDriverTables } from './docs/migration-tables.ts'
import { optionsPage } from './docs/options-page.ts'
import { PICTURE, sessionPicture } from './docs/picture.ts'
import { readResults, triedTable, withTable } from './docs/results.ts'
import { troubleshootingPage } from './docs/troubleshooting-page.ts'

// Pages that are made out of the code, and of what runs have left. A test says when one is stale.
writeFileSync(resolve(import.meta.dirname, '../docs/options.md'), optionsPage())
writeFileSync(resolve(import.meta.dirname, '../docs/troubleshooting.md'), troubleshootingPage())
const README = resolve(import.meta.dirname, '../README.md')
writeFileSync(README, withTable(readFileSync(README, 'utf8'), triedTable(readResults())))
const MIGRATION = resolve(import.meta.dirname, '../docs/migration.md')
writeFileSync(MIGRATION, withDriverTables(readFileSync(MIGRATION, 'utf8')))
const METRICS = resolve(import.meta.dirname, '../docs/metrics.md')
writeFileSync(METRICS, withMetricsTable(readFileSync(METRICS, 'utf8')))
if (process.getuid?.() === 0) writeFileSync(PICTURE, sessionPicture())
else console.error('docs/session.svg stays as it is: its session needs mounts, so root; run "sudo npm run docs"')
