import * as z from 'zod/mini'
import type { Host } from '../host/host.ts'
import type { Cursor } from '../log/log-reader.ts'
import { type RecordForm, readRecord, unlessDamaged, writeRecord } from './json-record.ts'
import { METRICS_FILE } from './paths.ts'

const schema = z.object({
  /** How far the log was read. */
  cursor: z.array(z.object({ head: z.string(), offset: z.number() })),
  /** Series -> total of all that was read up to there. */
  totals: z.record(z.string(), z.number()),
})

/** The counters, and what of the log is in them already: one file, so that they always agree. */
export interface MetricsRecord {
  cursor: Cursor
  totals: Readonly<Record<string, number>>
}

const FORM: RecordForm<MetricsRecord> = { format: 1, schema }

/** Undefined also where it is damaged. Call it under the lock of the metrics, as for `writeMetricsRecord`. */
export function readMetricsRecord(host: Host, stateDir: string): MetricsRecord | undefined {
  return unlessDamaged(() => readRecord(host, `${stateDir}/${METRICS_FILE}`, FORM))
}

export function writeMetricsRecord(host: Host, stateDir: string, record: MetricsRecord): void {
  writeRecord(host, `${stateDir}/${METRICS_FILE}`, FORM, record)
}
