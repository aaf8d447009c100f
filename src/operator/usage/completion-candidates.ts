import { VERB_NAMES } from '../verbs/index.ts'
import { parseChoices } from '../verbs/options.ts'

/** Kinds of recorded names that `completion --offer` prints, by placeholder. */
const RECORDS: Readonly<Record<string, string>> = {
  NAMESPACE: 'namespaces',
  POD: 'pods',
  MOUNT: 'mounts',
  VOLUME: 'volumes',
}

/** The candidates that a shell completes for a placeholder of the help. */
export interface CompletionCandidates {
  words: readonly string[]
  files: 'none' | 'directories' | 'all'
  /** Kinds of names that the script queries from modekeep. */
  records: readonly string[]
}

/** @param operand in the notation of the help: `[POD|MOUNT|VOLUME]`, `keep|grant` */
export function parseCandidates(operand = ''): CompletionCandidates {
  const placeholders: readonly string[] = operand.match(/[A-Z]+/g) ?? []
  return {
    words: placeholders.includes('VERB') ? VERB_NAMES : parseChoices(operand).filter((word) => /^\w/.test(word)),
    files: placeholders.includes('FILE') ? 'all' : placeholders.includes('DIR') ? 'directories' : 'none',
    records: placeholders.flatMap((placeholder) => RECORDS[placeholder] ?? []),
  }
}
