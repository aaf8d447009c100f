import * as z from 'zod/mini'
import type { Cursor } from '../log/log-reader.ts'
import { RecordKind } from './record.ts'

/** The counters, and what of the log is in them already: one file, so that they always agree. */
export const metricsRecord = new RecordKind<{ cursor: Cursor; totals: Readonly<Record<string, number>> }, undefined>({
  format: 1,
  schema: () =>
    z.object({
      /** How far the log was read. */
      cursor: z.array(z.object({ head: z.string(), offset: z.number() })),
      /** Series -> total of all that was read up to there. */
      totals: z.record(z.string(), z.number()),
    }),
  ownerOf: () => undefined,
  directoryOf: ({ config }) => config.stateDir,
  name: 'metrics.json',
})
