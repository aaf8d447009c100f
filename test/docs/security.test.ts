import * as fs from 'node:fs'
import { resolve } from 'node:path'
import { describe, expect, it } from 'vitest'

const ROOT = resolve(import.meta.dirname, '../..')
const page = fs.readFileSync(`${ROOT}/docs/security.md`, 'utf8')
const HEAD = /^\| (promise|cannot|limit) \||^\|---/

/** The rows of the tables of promises: all tables before the limits. */
const promises = page
  .slice(0, page.indexOf('\n## Limits'))
  .split('\n')
  .filter((line) => line.startsWith('|') && !HEAD.test(line))
  .map((line) => line.replace(/^\| (.+) \|$/, '$1'))

/** The tests of each promise, as "file: name". */
const evidence: Record<string, string[]> = JSON.parse(fs.readFileSync(`${ROOT}/docs/security-evidence.json`, 'utf8'))
const rows = Object.entries(evidence).flatMap(([promise, tests]) =>
  tests.map((test) => {
    const [, file = '', name = ''] = /^(test\/\S+\.test\.ts): (.+)$/.exec(test) ?? []
    return { promise, test, file, name }
  }),
)

/** A test's name as a source has it, in one of the quotes a source may use. */
function named(text: string, name: string): boolean {
  return ["'", '"', '`'].some((quote) => text.includes(`${quote}${name}${quote}`))
}

describe('every promise of the security page', () => {
  it('is in a table for each kind of person, with more than 40 in total', () => {
    expect(page.match(/^## .+/gm)).toEqual([
      '## What is trusted',
      "## A pod's author",
      '## A pod',
      '## A user of the node',
      '## Someone with a copy of the state directory',
      '## Limits',
    ])
    expect(promises.length).toBeGreaterThan(40)
  })

  it('has at least one test in security-evidence.json, which lists no other promise', () => {
    expect(Object.keys(evidence)).toEqual(promises)
    expect(Object.values(evidence).filter((tests) => tests.length === 0)).toEqual([])
    expect(rows.length).toBeGreaterThan(150)
  })

  it.each(rows)('names a test that exists: $promise: $test', ({ file, name, test }) => {
    expect(file, test).not.toBe('')
    const path = `${ROOT}/${file}`
    expect(fs.existsSync(path), file).toBe(true)
    expect(named(fs.readFileSync(path, 'utf8'), name), `${file} has no test "${name}"`).toBe(true)
  })
})
