import { describe, expect, it } from 'vitest'
import { getVerbForm, OPERATOR_VERB_NAMES } from '../../../src/cli/commands/index.ts'
import { formatHelp } from '../../../src/cli/usage/help.ts'

it('the help uses the width of a wide terminal', () => {
  expect(formatHelp('status', 200).split('\n').length).toBeLessThan(formatHelp('status').split('\n').length)
})

describe.each([undefined, ...OPERATOR_VERB_NAMES])('the help of %s', (verb) => {
  const lines = formatHelp(verb).split('\n')

  it.each([60, 80, 200])('fits a terminal of %i columns', (width) => {
    const lines = formatHelp(verb, width).split('\n')
    expect(lines.filter((line) => line.length > width)).toEqual([])
  })

  it('is as wide as the terminal, or 80 columns, and has the same words at any width', () => {
    const texts = [formatHelp(verb), ...[60, 80, 200].map((width) => formatHelp(verb, width))]
    expect(texts[0]).toBe(texts[2])
    const words = texts.map((text) => text.split(/\s+/).filter((word) => word !== '\\'))
    expect(words[1]).toEqual(words[2])
    expect(words[3]).toEqual(words[2])
  })

  it('has an example', () => {
    expect(lines).toContain(lines.includes('Examples:') ? 'Examples:' : 'Example:')
    expect(lines.findLastIndex((line) => /^ {2}\S*.*modekeep/.test(line))).toBeGreaterThan(
      lines.findIndex((line) => /^Examples?:$/.test(line)),
    )
  })

  it('names every option and its value', () => {
    if (verb === undefined) return
    for (const name of Object.keys(getVerbForm(verb).options)) expect(lines.join('\n')).toContain(`--${name}`)
  })
})
