import * as z from 'zod/mini'
import { waitFor } from '../host/back-off.ts'
import { isVolumeBusy } from './locks.ts'
import { listVolumes, RESERVATION_FILE, type Store } from './places.ts'
import { type Found, OF_A_VOLUME, RecordKind } from './record.ts'

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

/** Written and removed under the volume's lock, and believed only while it is held: a killed process leaves one. */
export const reservations = new RecordKind<Reservation>({ format: 1, schema, ...OF_A_VOLUME, name: RESERVATION_FILE })

/** The volumes that calls are at work on: a call's death frees its lock, and with it the reservation. */
export function listReservations(store: Store): ({ volume: string } & Found<Reservation>)[] {
  return listVolumes(store)
    .filter((volume) => isReserved(store, volume))
    .map((volume) => ({ volume, ...reservations.find(store, volume) }))
}

/** Waits until a reservation is given up. Whoever has one waits for nobody; who has only the volume's lock may. */
export async function untilReleased(store: Store, volume: string): Promise<void> {
  await waitFor(() => (isReserved(store, volume) ? undefined : true))
}

function isReserved(store: Store, volume: string): boolean {
  return reservations.has(store, volume) && isVolumeBusy(store, volume)
}
