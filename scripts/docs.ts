import { readFileSync, writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { optionsPage } from './docs/options-page.ts'
import { readResults, triedTable, withTable } from './docs/results.ts'

// Pages that are made out of the code, and of what runs have left. A test says when one is stale.
writeFileSync(resolve(import.meta.dirname, '../docs/options.md'), optionsPage())
const README = resolve(import.meta.dirname, '../README.md')
writeFileSync(README, withTable(readFileSync(README, 'utf8'), triedTable(readResults())))
