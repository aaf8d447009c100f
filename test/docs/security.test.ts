import * as fs from 'node:fs'
import { resolve } from 'node:path'
import { describe, expect, it } from 'vitest'

const ROOT = resolve(import.meta.dirname, '../..')
const page = fs.readFileSync(`${ROOT}/docs/security.md`, 'utf8')
const HEAD = /^\| (promise|cannot) \| shown by \|$|^\|---/

/** The rows of the page's tables: what is promised, and the file and name of the test that shows it. */
const rows = page
  .split('\n')
  .filter((line) => line.startsWith('|') && !HEAD.test(line))
  .map((line) => {
    const [, promise = '', shown = ''] = /^\| (.+) \| (.+) \|$/.exec(line) ?? []
    const [, file = '', name = ''] = /^`(test\/[^`]+\.test\.ts)` "(.+)"$/.exec(shown) ?? []
    return { line, promise, file, name }
  })

/** A test's name as a source has it, in one of the quotes a source may use. */
function named(text: string, name: string): boolean {
  return ["'", '"', '`'].some((quote) => text.includes(`${quote}${name}${quote}`))
}

describe('every promise of the security page', () => {
  it('is in a table of each kind of person, and there are many', () => {
    expect(page.match(/^## .+/gm)).toEqual([
      '## What is trusted',
      "## A pod's author",
      '## A pod',
      '## A user of the node',
      '## Someone with a copy of the state directory',
      '## Limits',
    ])
    expect(rows.length).toBeGreaterThan(40)
  })

  it.each(rows)('names a test that exists: $promise', ({ line, file, name }) => {
    expect(file, line).not.toBe('')
    const path = `${ROOT}/${file}`
    expect(fs.existsSync(path), file).toBe(true)
    expect(named(fs.readFileSync(path, 'utf8'), name), `${file} has no test "${name}"`).toBe(true)
  })
})
