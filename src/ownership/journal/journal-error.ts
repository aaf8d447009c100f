import { errorCode } from '../../host/host.ts'
import { Refusal } from '../../refusal/refusal.ts'
import { isCorrupt } from './schema.ts'

/** Runs what is done to a journal. @throws {Refusal} that names it, instead of SQLite's own error */
export function guarded<T>(where: string, work: () => T): T {
  try {
    return work()
  } catch (error) {
    if (error instanceof RangeError) throw damaged(where, error.message)
    if (errorCode(error) !== 'ERR_SQLITE_ERROR') throw error
    throw damaged(where, (error as Error).message, error)
  }
}

/** @param where the journal's file; `cause`: SQLite's error, without one the content does not fit */
export function damaged(where: string, reason: string, cause?: unknown): Refusal {
  const wayOut = isCorrupt(cause)
    ? 'repair the disk, or give up what could be restored by moving its directory away'
    : 'mend that, and the call is repeated'
  return new Refusal(
    `the ownership journal ${where} cannot be used (${reason}), so nothing more is changed: ${wayOut}`,
    {
      cause,
    },
  )
}
