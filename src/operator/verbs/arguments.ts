import { type ParseArgsOptionsConfig, parseArgs } from 'node:util'
import { quoted } from '../../refusal/refusal.ts'
import type { Given } from './form.ts'
import { type Verb, verbForm } from './index.ts'
import { formOf, isOption, OPTIONS, type OptionName, valueFaults } from './options.ts'
import { nearest } from './suggest.ts'

const PARSED: ParseArgsOptionsConfig = Object.fromEntries(
  (Object.keys(OPTIONS) as OptionName[]).map((name) => {
    const { short, value } = formOf(name)
    return [name, { type: value === undefined ? 'boolean' : 'string', ...(short && { short }) }]
  }),
)

/**
 * Reads the words after a verb.
 * @returns options by name, other words, and every fault of form; values that are missing read undefined
 */
export function readArguments(verb: Verb, args: string[]): { given: Given; words: string[]; faults: string[] } {
  const known = Object.keys(verbForm(verb).options)
  const { tokens } = parseArgs({ args, options: PARSED, strict: false, allowPositionals: true, tokens: true })
  const given = new Map<string, string | undefined>()
  const words: string[] = []
  const faults: string[] = []
  for (const token of tokens) {
    if (token.kind === 'positional') words.push(token.value)
    if (token.kind !== 'option') continue
    const { name, rawName, value } = token
    if (!isOption(name) || !known.includes(name)) faults.push(unknownOption(verb, rawName, known))
    else if (given.has(name)) faults.push(`${rawName} is given twice: keep one`)
    else faults.push(...valueFaults(name, value))
    given.set(name, value)
  }
  return { given, words, faults }
}

function unknownOption(verb: Verb, rawName: string, known: readonly string[]): string {
  const meant = nearest(rawName.replace(/^-+/, ''), known)
  const takes = known.map((option) => `--${option}`).join(', ')
  const guess = meant === undefined ? '' : `did you mean --${meant}? `
  return `${verb} has no option ${quoted(rawName)}: ${guess}It takes ${takes}`.replace(': It', ': it')
}
