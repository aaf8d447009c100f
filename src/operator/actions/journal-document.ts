import type { JournalHeader } from '../../store/exported-journal.ts'
import { extractLastWalk, type LastWalk } from './last-walk.ts'

export interface JournalDocument {
  verb: 'journal'
  action: 'export' | 'import'
  /** '-': stdout. */
  file: string
  volume: string
  /** Where the volume was walked; of an import, where it is on this node. */
  source: string
  isDry: boolean
  outcome: 'exported' | 'imported' | 'already here' | 'would import'
  /** With isDry: why it would be refused now. */
  refusal: string | null
  /** What the volume's record says of the last walk; null: there is none that can be read. */
  recorded: LastWalk | null
  /** A walk or a restore was under way when it was exported: what that did later is not in the file. */
  busy: boolean
  /** Of the file. */
  bytes: number
}

export function extractRecordedWalk({ record }: Pick<JournalHeader, 'record'>): JournalDocument['recorded'] {
  return record && extractLastWalk(record)
}

const YIELD_INTERVAL_BYTES = 4 << 20

/** Gives way to other events, Ctrl-C among them, every few megabytes. */
export function createPacer(): (bytes: number) => Promise<void> {
  let since = 0
  return async (bytes) => {
    since += bytes
    if (since < YIELD_INTERVAL_BYTES) return
    since = 0
    await new Promise((resolve) => setImmediate(resolve))
  }
}
