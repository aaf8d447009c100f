import * as fs from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { insertDriverTables } from '../../scripts/docs/migration-tables.ts'
import { SUPPORTED_DRIVERS, UNSUPPORTED_DRIVERS } from '../../src/migrate/drivers.ts'
import { ROOT } from './pages.ts'

const page = fs.readFileSync(join(ROOT, 'docs/migration.md'), 'utf8')

describe('docs/migration.md', () => {
  it('has the keys of each driver that migrate reads, as "npm run docs" writes them', () => {
    expect(page).toBe(insertDriverTables(page))
    for (const { names, options } of SUPPORTED_DRIVERS)
      for (const key of Object.keys(options)) expect(page, `${key} of ${names[0]}`).toContain(`| \`${key}\` |`)
    for (const { names } of UNSUPPORTED_DRIVERS) for (const name of names) expect(page).toContain(`\`${name}\``)
  })
})
