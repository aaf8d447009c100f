import { writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { optionsPage } from './docs/options-page.ts'

// Pages that are made out of the code. A test says when one is stale.
writeFileSync(resolve(import.meta.dirname, '../docs/options.md'), optionsPage())
