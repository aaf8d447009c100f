import { VERB_NAMES } from '../verbs/index.ts'
import { parseChoices } from '../verbs/options.ts'

/** What is on record and can be named: what `completion --offer` prints. */
const RECORDS: Readonly<Record<string, string>> = {
  NAMESPACE: 'namespaces',
  POD: 'pods',
  MOUNT: 'mounts',
  VOLUME: 'volumes',
}

/** What a shell can offer for a placeholder of the help. */
export interface CompletionCandidates {
  words: readonly string[]
  files: 'none' | 'directories' | 'all'
  /** Names that modekeep is asked for. */
  records: readonly string[]
}

/** @param operand as help has it: `[POD|MOUNT|VOLUME]`, `keep|grant` */
export function parseCandidates(operand = ''): CompletionCandidates {
  const places: readonly string[] = operand.match(/[A-Z]+/g) ?? []
  return {
    words: places.includes('VERB') ? VERB_NAMES : parseChoices(operand).filter((word) => /^\w/.test(word)),
    files: places.includes('FILE') ? 'all' : places.includes('DIR') ? 'directories' : 'none',
    records: places.flatMap((place) => RECORDS[place] ?? []),
  }
}
