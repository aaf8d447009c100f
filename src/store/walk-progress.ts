import * as z from 'zod/mini'
import type { Host } from '../host/host.ts'
import { type RecordForm, readRecord, unlessUnreadable, writeRecord } from './json-record.ts'
import { PROGRESS_FILE, volumeStateDirectory } from './paths.ts'

const schema = z.object({
  /** The process that walks. */
  pid: z.number(),
  /** Milliseconds since 1970. */
  at: z.number(),
  visited: z.number(),
  changed: z.number(),
})

/** How far a walk or a restore of a volume is: written about once a second, so a short one leaves none. */
export type WalkProgress = z.infer<typeof schema>

const FORM: RecordForm<WalkProgress> = { format: 1, schema }

export function writeWalkProgress(host: Host, stateDir: string, volume: string, progress: WalkProgress): void {
  writeRecord(host, pathOf(stateDir, volume), FORM, progress)
}

/** Believe it only while the volume's lock is held: a process that was killed leaves it behind. */
export function readWalkProgress(host: Host, stateDir: string, volume: string): WalkProgress | undefined {
  return unlessUnreadable(() => readRecord(host, pathOf(stateDir, volume), FORM))
}

export function removeWalkProgress(host: Host, stateDir: string, volume: string): void {
  host.files.remove(pathOf(stateDir, volume))
}

function pathOf(stateDir: string, volume: string): string {
  return `${volumeStateDirectory(stateDir, volume)}/${PROGRESS_FILE}`
}
