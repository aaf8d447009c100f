import * as z from 'zod/mini'
import type { ProgressListener, WalkCounts } from '../ownership/walk/report.ts'
import type { WalkResult } from '../ownership/walks.ts'
import { PER_VOLUME, RecordKind } from './record.ts'
import { GIVEN_UP_FILE, PROGRESS_FILE } from './record-directories.ts'
import type { Session } from './session.ts'

const schema = () =>
  z.object({
    volume: z.string(),
    /** Pid of the process that walks. */
    pid: z.number(),
    /** Milliseconds since 1970. */
    at: z.number(),
    visited: z.number(),
    changed: z.number(),
  })

/**
 * Progress of a walk or a restore of a volume, written about once a second, so a short walk writes none. It is valid
 * only while the volume's lock is held, because a killed process leaves it behind.
 */
export const walkProgress = new RecordKind<z.infer<ReturnType<typeof schema>>>({
  format: 2,
  schema,
  ...PER_VOLUME,
  name: PROGRESS_FILE,
})

const givenUpSchema = () =>
  z.object({
    volume: z.string(),
    /** The process that walked. */
    pid: z.number(),
    /** Milliseconds since 1970. */
    at: z.number(),
  })

/** Records the last walk or restore of a volume that was given up after the full time. A completed walk removes it. */
export const givenUpWalks = new RecordKind<z.infer<ReturnType<typeof givenUpSchema>>>({
  format: 1,
  schema: givenUpSchema,
  ...PER_VOLUME,
  name: GIVEN_UP_FILE,
  isOfThisBoot: true,
})

/**
 * Runs a walk of a volume. Reports its progress to the caller and in the state directory, and notes its result.
 */
export async function runReportedWalk(
  session: Session,
  volume: string,
  walk: (progress: ProgressListener) => Promise<WalkResult>,
): Promise<WalkResult> {
  const { progress } = session
  const reportProgress = (counts: WalkCounts) => {
    walkProgress.write(session, { volume, pid: process.pid, at: Date.now(), ...counts })
    progress?.(counts)
  }
  try {
    const walked = await walk(reportProgress)
    const { visited, changed, alreadyRight, left } = walked.report
    session.note({ inodes: { visited, changed, alreadyRight, left } })
    return walked
  } finally {
    walkProgress.remove(session, volume)
  }
}
