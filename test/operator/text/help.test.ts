import { describe, expect, it } from 'vitest'
import { helpText } from '../../../src/operator/usage/help.ts'
import { VERB_NAMES, verbForm } from '../../../src/operator/verbs/index.ts'

describe.each([undefined, ...VERB_NAMES])('the help of %s', (verb) => {
  const lines = helpText(verb).split('\n')

  it('fits a terminal of 80 columns', () => {
    // An example is one line, to be copied.
    const texts = lines.filter((line) => !/^ {2}(modekeep|source)\b/.test(line))
    expect(texts.filter((line) => line.length > 80)).toEqual([])
  })

  it('has an example', () => {
    expect(lines).toContain(lines.includes('Examples:') ? 'Examples:' : 'Example:')
    expect(lines.findLastIndex((line) => /^ {2}\S*.*modekeep/.test(line))).toBeGreaterThan(
      lines.findIndex((line) => /^Examples?:$/.test(line)),
    )
  })

  it('names every option and its value', () => {
    if (verb === undefined) return
    for (const name of Object.keys(verbForm(verb).options)) expect(lines.join('\n')).toContain(`--${name}`)
  })
})
