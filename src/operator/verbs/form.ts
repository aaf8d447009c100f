import type { OptionName } from './options.ts'

/** All there is to say of a verb: parsing, help, completion and the man page are made from it. */
export interface VerbForm {
  /** What follows the verb, options aside. */
  operands: string
  /** Options in `usage` that must be given. */
  needs?: string
  /** One line for the overview. */
  summary: string
  /** Paragraphs. */
  text: readonly string[]
  /** What each option does, in the order of the help. */
  options: Readonly<Partial<Record<OptionName, string>>>
  /** What completion offers for the operand. */
  completes?: 'directories' | 'verbs' | readonly string[]
  examples: readonly string[]
  /** What exit status 1 means beside "failed or refused". */
  failure?: string
}

export const JSON_TEXT = 'one JSON document on stdout'
export const HELP_TEXT = 'this text'
