import * as z from 'zod/mini'
import { retryUntilDefined } from '../host/waiting.ts'
import { createStuckHolderCheck, isVolumeBusy } from './lock-holders.ts'
import { RecordKind, type RecordResult } from './record.ts'
import { locateReservations, locateVolumeRecords, type Store } from './record-directories.ts'
import { isVolumeId } from './volume-id.ts'

const schema = () =>
  z.object({
    volume: z.string(),
    source: z.optional(z.string()),
    /** Location of the source, if the mount table shows it. */
    location: z.optional(z.object({ device: z.string(), path: z.string() })),
    /** Group that a walk applies or a mapping expects on disk; undefined: a restore. */
    group: z.optional(z.number()),
    /** Directory of the mount that is being made; undefined: the call makes none. */
    directory: z.optional(z.string()),
    pod: z.optional(z.string()),
  })

/** Work of a call on a volume, shown to calls on a part of the volume or on a tree that contains it. */
export type Reservation = z.infer<ReturnType<typeof schema>>

/**
 * A reservation is written under the volume's lock and the node's lock for reservations, and removed under either. It
 * is valid only while the volume's lock is held, because a killed process leaves its reservation behind.
 */
export const reservations = new RecordKind<Reservation>({
  format: 1,
  schema,
  ownerOf: ({ volume }) => volume,
  directoryOf: locateReservations,
  name: { of: (volume) => `${volume}.json` },
})

/** Lists the reservations of running calls. A crash releases the call's lock, which ends its reservation. */
export function listReservations(store: Store): ({ volume: string } & RecordResult<Reservation>)[] {
  return listReservedVolumes(store)
    .filter((volume) => isVolumeBusy(store, volume))
    .map((volume) => ({ volume, ...reservations.find(store, volume) }))
    .filter(({ record, problem }) => record ?? problem)
}

/** Lists all volumes that have a reservation file, complete or not, of a running or a crashed call. */
export function listReservedVolumes({ host, config }: Store): string[] {
  const names = host.files.list(locateReservations({ config }))
  const volumes = names.map((name) => name.replace(/\.json(\.new)?$/, ''))
  return [...new Set(volumes)].filter(isVolumeId).sort()
}

/**
 * Removes the reservations of crashed calls. Call it under the node's lock for reservations, so that no call can write
 * one meanwhile. Then the reservation of a volume whose lock is free has no owner.
 */
export function removeStaleReservations(store: Store): void {
  for (const volume of listReservedVolumes(store)) {
    if (!isVolumeBusy(store, volume)) reservations.remove(store, volume)
  }
}

/**
 * Waits until a reservation is released. A call that has a reservation must not wait for another one; a call that holds
 * only its volume's lock may.
 * @throws {Refusal} if the volume is still walked for a call that has ended, or if the lock holder makes no progress
 */
export async function waitUntilReleased(store: Store, volume: string): Promise<void> {
  const refuse = createStuckHolderCheck(store, locateVolumeRecords(store, volume))
  await retryUntilDefined(() => {
    if (!isReserved(store, volume)) return true
    refuse()
    return undefined
  })
}

function isReserved(store: Store, volume: string): boolean {
  return reservations.has(store, volume) && isVolumeBusy(store, volume)
}
