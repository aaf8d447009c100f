import { JSON_TEXT, type VerbForm } from './form.ts'

export const version: VerbForm<{ verb: 'version' }> = {
  operands: '',
  summary: 'print the version',
  text: ['Prints the version; with --json also that of the runtime it carries.'],
  options: { json: JSON_TEXT },
  examples: ['modekeep version --json'],
  read: () => ({ verb: 'version' }),
}
