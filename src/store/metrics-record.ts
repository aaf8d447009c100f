import * as z from 'zod/mini'
import type { Cursor } from '../log/log-reader.ts'
import { RecordKind } from './record.ts'

/** The counters, and the position in the log up to which they count. One file has both, so that they agree. */
export const metricsRecord = new RecordKind<{ cursor: Cursor; totals: Readonly<Record<string, number>> }, undefined>({
  format: 1,
  schema: () =>
    z.object({
      /** Position up to which the log was read. */
      cursor: z.array(z.object({ head: z.string(), offset: z.number() })),
      /** Total of each series up to that position. */
      totals: z.record(z.string(), z.number()),
    }),
  ownerOf: () => undefined,
  directoryOf: ({ config }) => config.stateDir,
  name: 'metrics.json',
})
