import { FAULT_ENTRIES } from '../../errors/entries/index.ts'
import { createFault } from '../../errors/fault.ts'
import { quoted } from '../../errors/refusal.ts'
import { findNearest } from './operands.ts'
import type { VerbArguments, VerbForm } from './verb.ts'

/** @property code undefined: all codes */
export interface ExplainCommand {
  verb: 'explain'
  code: string | undefined
}

export const explainVerb = {
  operands: '[CODE]',
  summary: 'explain the code at the end of a message',
  text: [
    'Prints the meaning of a code, its cause and the remedy. Messages in events end with it: [group-conflict]. Without ' +
      'CODE it lists all codes. docs/troubleshooting.md has the same entries.',
  ],
  options: {},
  examples: ['modekeep explain group-conflict', 'modekeep explain'],
  read({ words: [word, ...more], faults }: VerbArguments): ExplainCommand {
    // A code may be copied with its brackets.
    const code = word?.replace(/^\[(.*)\]$/, '$1')
    if (more.length > 0)
      faults.push(createFault('usage', `explain takes one code, got also ${quoted(more)}`, 'name one'))
    if (code !== undefined && !FAULT_ENTRIES.has(code)) {
      const nearest = findNearest(code, [...FAULT_ENTRIES.keys()])
      const remedy = `${nearest === undefined ? '' : `did you mean ${nearest}? `}"modekeep explain" lists all`
      faults.push(createFault('usage', `there is no code ${quoted(code)}`, remedy))
    }
    return { verb: 'explain', code }
  },
} satisfies VerbForm

/** Lists the entries of a command for its JSON document. */
export function listExplanations({ code }: ExplainCommand) {
  return [...FAULT_ENTRIES]
    .filter(([name]) => code === undefined || name === code)
    .map(([name, { section, meaning, cause = null, remedy, see }]) => {
      return { code: name, section, meaning, cause, remedy, page: see === undefined ? null : `docs/${see}` }
    })
}
