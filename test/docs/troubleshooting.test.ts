import * as fs from 'node:fs'
import { resolve } from 'node:path'
import { describe, expect, it } from 'vitest'
import { HOLE, texts, textsIn } from './messages.ts'

const page = fs.readFileSync(resolve(import.meta.dirname, '../../docs/troubleshooting.md'), 'utf8')
const own = page.slice(page.indexOf("\n## A pod's options\n"))

/** The messages that the page quotes: in headings, and in the paragraph that begins with "Also" below one. */
const quoted = [...own.matchAll(/^### (.*)\n(?:\nAlso ((?:.+\n)+))?/gm)].flatMap(([, heading = '', also = '']) =>
  [...`${heading}\n${also}`.matchAll(/`([^`]+)`/g)].map(([, text = '']) => text.replaceAll('\n', ' ')),
)

/** Faults of modekeep's own that nobody can bring about by what he writes. */
const NOT_FOR_PEOPLE = [/^no such kind: /, /^no bare name of a program: /, /^no two groups to swap: /]
/** All their words come from elsewhere. */
const WITHOUT_WORDS = /^(option "…")?[… :;]+$/

const escaped = (text: string) => text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')

/** Whether what the page quotes is (a part of) a message, a hole being any text on either side. */
function quotes(quote: string, message: string): boolean {
  return new RegExp(quote.split(HOLE).map(escaped).join('.*?'), 's').test(message)
}

describe('the page of messages', () => {
  const all = texts()
  const known = all.filter(({ text, isMessage }) => isMessage && !WITHOUT_WORDS.test(text)).map(({ text }) => text)

  it('is compared with what the sources say', () => {
    expect(known.length).toBeGreaterThan(100)
    expect(quoted.length).toBeGreaterThan(100)
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the text of a source
    const source = 'throw new Refusal(`a ${b ? `is ${c}: mend the other` : "so far"}` + " is bad")'
    expect(textsIn(source)).toEqual([
      { text: 'a … is bad', isMessage: true },
      { text: 'is …: mend the other', isMessage: true },
      { text: 'so far', isMessage: false },
    ])
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the text of a source
    expect(textsIn('warnOnFailure(session, `what was left of ${a} stays`, work)')).toContainEqual({
      text: 'what was left of … stays: …',
      isMessage: true,
    })
  })

  it.each(quoted)('quotes a message that exists: %s', (quote) => {
    expect(all.filter(({ text }) => quotes(quote, text))).not.toEqual([])
    // What fits anything would count for everything.
    expect(quote.replaceAll(/[… :"()]/g, '').length).toBeGreaterThan(5)
    expect(quote).not.toMatch(WITHOUT_WORDS)
  })

  it('has every message of the sources', () => {
    const missing = known.filter(
      (message) =>
        !NOT_FOR_PEOPLE.some((pattern) => pattern.test(message)) && !quoted.some((quote) => quotes(quote, message)),
    )
    expect(missing).toEqual([])
  })
})
