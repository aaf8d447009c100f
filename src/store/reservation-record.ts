import * as z from 'zod/mini'
import type { Host } from '../host/host.ts'
import { waitFor } from '../host/wait-for.ts'
import { damagedRecord, type RecordForm, readRecord, unlessDamaged, writeRecord } from './json-record.ts'
import { isVolumeBusy } from './locks.ts'
import { RESERVATION_FILE, volumeStateDirectory } from './paths.ts'
import { listVolumes } from './volume-record.ts'

const schema = z.object({
  volume: z.string(),
  source: z.optional(z.string()),
  /** Where the source lies, as far as the mount table tells. */
  location: z.optional(z.object({ device: z.string(), path: z.string() })),
  /** The group that a walk gives or a mapping expects on disk; undefined: a restore. */
  group: z.optional(z.number()),
  /** The mount that is being made; undefined: none will come of it. */
  directory: z.optional(z.string()),
  pod: z.optional(z.string()),
})

/** What a call is doing to a volume, for those who want a part of it, or what it is a part of. */
export type Reservation = z.infer<typeof schema>

const FORM: RecordForm<Reservation> = { format: 1, schema }

/** Believe it only while the volume's lock is held: a process that was killed leaves it behind. @throws as `readRecord` does */
export function readReservation(host: Host, stateDir: string, volume: string): Reservation | undefined {
  const path = pathOf(stateDir, volume)
  const reservation = readRecord(host, path, FORM)
  if (reservation !== undefined && reservation.volume !== volume) throw damagedRecord(path)
  return reservation
}

/** Call it under the volume's lock, as for `removeReservation`. */
export function writeReservation(host: Host, stateDir: string, reservation: Reservation): void {
  host.files.makeDirectory(volumeStateDirectory(stateDir, reservation.volume))
  writeRecord(host, pathOf(stateDir, reservation.volume), FORM, reservation)
}

export function removeReservation(host: Host, stateDir: string, volume: string): void {
  host.files.remove(pathOf(stateDir, volume))
}

/**
 * The volumes that calls are at work on: a call's death frees its lock, and with it the reservation.
 * @throws {UnknownFormat} where a call of another version is at work
 */
export function listReservations(host: Host, stateDir: string): Reservation[] {
  return listVolumes(host, stateDir).flatMap((volume) => activeReservation(host, stateDir, volume) ?? [])
}

/** Waits until a reservation is given up. Whoever has one waits for nobody; who has only the volume's lock may. */
export async function untilReleased(host: Host, stateDir: string, volume: string): Promise<void> {
  await waitFor(() => (activeReservation(host, stateDir, volume) ? undefined : true))
}

function activeReservation(host: Host, stateDir: string, volume: string): Reservation | undefined {
  if (host.files.read(pathOf(stateDir, volume)) === undefined || !isVolumeBusy(host, stateDir, volume)) return undefined
  return unlessDamaged(() => readReservation(host, stateDir, volume))
}

function pathOf(stateDir: string, volume: string): string {
  return `${volumeStateDirectory(stateDir, volume)}/${RESERVATION_FILE}`
}
