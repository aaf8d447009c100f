import * as fs from 'node:fs'
import { resolve } from 'node:path'
import { describe, expect, it } from 'vitest'
import { createTroubleshootingPage } from '../../scripts/docs/troubleshooting-page.ts'
import { FAULT_ENTRIES, FAULT_ENTRY_SECTIONS } from '../../src/errors/entries/index.ts'

const ROOT = resolve(import.meta.dirname, '../..')

/** The sources that can raise a fault: all but the entries themselves. */
const SOURCES = ['src', 'driver'].flatMap((directory) =>
  fs
    .readdirSync(`${ROOT}/${directory}`, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts') && !name.startsWith('errors/entries/'))
    .map((name) => fs.readFileSync(`${ROOT}/${directory}/${name}`, 'utf8')),
)

const countWords = (text: string) => text.split(/\s+/).length

it('docs/troubleshooting.md equals the output of "npm run docs"', () => {
  expect(fs.readFileSync(`${ROOT}/docs/troubleshooting.md`, 'utf8')).toBe(createTroubleshootingPage())
})

describe('the entries of docs/troubleshooting.md', () => {
  it('have each code once', () => {
    const codes = Object.values(FAULT_ENTRY_SECTIONS).flatMap((entries) => Object.keys(entries))
    expect(codes.length).toBeGreaterThan(100)
    expect([...new Set(codes)]).toEqual(codes)
    expect(codes.filter((code) => !/^[a-z]+(-[a-z]+)*$/.test(code))).toEqual([])
  })

  it('have only codes that the sources raise', () => {
    const unused = [...FAULT_ENTRIES.keys()].filter((code) => !SOURCES.some((source) => source.includes(`'${code}'`)))
    expect(unused).toEqual([])
  })

  it.each([...FAULT_ENTRIES])('have at most 60 words, in sentences of at most 25: %s', (_code, entry) => {
    const { meaning, cause = '', remedy } = entry
    expect(countWords(`${meaning} ${cause} ${remedy}`)).toBeLessThanOrEqual(60)
    const sentences = [meaning, cause, remedy].flatMap((text) => text.split(/(?<=[.:;])\s/))
    expect(sentences.filter((sentence) => countWords(sentence) > 25)).toEqual([])
    for (const text of [meaning, remedy]) expect(text).toMatch(/^\S.*\.$/)
  })
})
