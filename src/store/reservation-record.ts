import * as z from 'zod/mini'
import type { Host } from '../host/host.ts'
import { readRecord, writeRecord } from './json-record.ts'
import { RESERVATION_FILE, volumeStateDirectory } from './paths.ts'
import { listVolumes } from './volume-record.ts'

const schema = z.object({
  volume: z.string(),
  source: z.string(),
  /** Where the source lies, as far as the mount table tells. */
  place: z.optional(z.object({ device: z.string(), path: z.string() })),
  /** The group that a walk gives or a mapping expects on disk; undefined: a restore. */
  group: z.optional(z.number()),
  /** The mount that is being made; undefined: none will come of it. */
  directory: z.optional(z.string()),
  pod: z.optional(z.string()),
})

/** What a call is doing to a volume, for those who want a part of it, or what it is a part of. */
export type Reservation = z.infer<typeof schema>

/** Believe it only while the volume's lock is held: a process that was killed leaves it behind. */
export function readReservation(host: Host, stateDir: string, volume: string): Reservation | undefined {
  const reservation = readRecord(host, pathOf(stateDir, volume), schema)
  return reservation?.volume === volume ? reservation : undefined
}

/** Call it under the volume's lock, as for `removeReservation`. */
export function writeReservation(host: Host, stateDir: string, reservation: Reservation): void {
  host.files.makeDirectory(volumeStateDirectory(stateDir, reservation.volume))
  writeRecord(host, pathOf(stateDir, reservation.volume), reservation)
}

export function removeReservation(host: Host, stateDir: string, volume: string): void {
  host.files.remove(pathOf(stateDir, volume))
}

/** All that are written down, whether or not they still hold. */
export function listReservations(host: Host, stateDir: string): Reservation[] {
  return listVolumes(host, stateDir).flatMap((volume) => readReservation(host, stateDir, volume) ?? [])
}

function pathOf(stateDir: string, volume: string): string {
  return `${volumeStateDirectory(stateDir, volume)}/${RESERVATION_FILE}`
}
