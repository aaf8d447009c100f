import type { JournalHeader } from '../../store/exported-journal.ts'
import { extractLastWalk, type LastWalk } from './last-walk.ts'

export interface JournalDocument {
  verb: 'journal'
  action: 'export' | 'import'
  /** Path of the exported journal; '-' is stdout. */
  file: string
  volume: string
  /** For an export, the directory where the volume was walked; for an import, its directory on this node. */
  source: string
  isDry: boolean
  outcome: 'exported' | 'imported' | 'already here' | 'would import'
  /** With isDry: the refusal that the import would get now. */
  refusal: string | null
  /** The recorded state of the last walk; null: no readable record. */
  recorded: LastWalk | null
  /** A walk or a restore was running during the export. Its later changes are not in the file. */
  busy: boolean
  /** Size of the file. */
  bytes: number
}

export function extractRecordedWalk({ record }: Pick<JournalHeader, 'record'>): JournalDocument['recorded'] {
  return record && extractLastWalk(record)
}

const YIELD_INTERVAL_BYTES = 4 << 20

/** Returns a function that yields to other events, such as Ctrl-C, every few megabytes. */
export function createPacer(): (bytes: number) => Promise<void> {
  let since = 0
  return async (bytes) => {
    since += bytes
    if (since < YIELD_INTERVAL_BYTES) return
    since = 0
    await new Promise((resolve) => setImmediate(resolve))
  }
}
