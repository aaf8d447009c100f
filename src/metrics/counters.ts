import type * as NodeFs from 'node:fs'
import { endOfLog, LogReader } from '../log/log-reader.ts'
import { Refusal } from '../refusal/refusal.ts'
import { tryLockMetrics } from '../store/locks.ts'
import { readMetricsRecord, writeMetricsRecord } from '../store/metrics-record.ts'
import type { Session } from '../store/session.ts'
import { add, type Samples, zeros } from './samples.ts'
import { tally } from './tally.ts'

/**
 * Brings the counters up to the log's last line and remembers them with that place: a line is counted once, whatever is
 * rotated or killed in between. Calls of kubelet take no part in it.
 * @param use is told the counters before anybody else may count
 * @throws {Refusal} while another process counts
 */
export function count(fs: typeof NodeFs, { host, config }: Session, use: (counters: Samples) => void): void {
  const { stateDir, logFile } = config
  host.files.makeDirectory(stateDir)
  const lock = tryLockMetrics(host, stateDir)
  if (lock === undefined) throw new Refusal('another "modekeep status --prometheus" is at work: run it again')
  try {
    const record = readMetricsRecord(host, stateDir)
    const counters: Samples = new Map([...zeros('counters'), ...Object.entries(record?.totals ?? {})])
    // What happened before the first count is nobody's increase.
    const reader = new LogReader(fs, logFile, 'skip', record?.cursor ?? endOfLog(fs, logFile))
    for (const line of reader.lines()) tally(counters, line)
    add(counters, 'modekeep_log_gaps_total', {}, reader.gaps)
    writeMetricsRecord(host, stateDir, { cursor: reader.cursor, totals: Object.fromEntries(counters) })
    use(counters)
  } finally {
    lock.release()
  }
}
