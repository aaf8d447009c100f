import * as z from 'zod/mini'
import { retryUntilDefined } from '../host/back-off.ts'
import { isVolumeBusy } from './locks.ts'
import { isVolumeIdentity, reservationsDirectory, type Store, volumePlace } from './places.ts'
import { type Found, RecordKind } from './record.ts'
import { refusingStuckHolder } from './stuck-holder.ts'

const schema = () =>
  z.object({
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
export type Reservation = z.infer<ReturnType<typeof schema>>

/**
 * Written under the volume's lock and the node's lock for reservations, removed under either, and believed only while
 * the volume's is held: a killed process leaves one.
 */
export const reservations = new RecordKind<Reservation>({
  format: 1,
  schema,
  ownerOf: ({ volume }) => volume,
  directoryOf: reservationsDirectory,
  name: { of: (volume) => `${volume}.json` },
})

/** The volumes that calls are at work on: a call's death frees its lock, and with it the reservation. */
export function listReservations(store: Store): ({ volume: string } & Found<Reservation>)[] {
  return reservedVolumes(store)
    .filter((volume) => isVolumeBusy(store, volume))
    .map((volume) => ({ volume, ...reservations.find(store, volume) }))
    .filter(({ record, problem }) => record ?? problem)
}

/** Every volume of which a reservation is left, or the beginning of one, by a call at work or a dead one. */
export function reservedVolumes({ host, config }: Store): string[] {
  const names = host.files.list(reservationsDirectory({ config }))
  const volumes = names.map((name) => name.replace(/\.json(\.new)?$/, ''))
  return [...new Set(volumes)].filter(isVolumeIdentity).sort()
}

/**
 * Removes what dead calls have left. Call it under the node's lock for reservations: while nobody can write one, that of
 * a volume whose lock was free for a moment is nobody's.
 */
export function removeDeadReservations(store: Store): void {
  for (const volume of reservedVolumes(store)) {
    if (!isVolumeBusy(store, volume)) reservations.remove(store, volume)
  }
}

/**
 * Waits until a reservation is given up. Whoever has one waits for nobody; who has only the volume's lock may.
 * @throws {Refusal} where the volume is still walked for a call that is over, or its process at work makes no progress
 */
export async function untilReleased(store: Store, volume: string): Promise<void> {
  const refuse = refusingStuckHolder(store, volumePlace(store, volume))
  await retryUntilDefined(() => {
    if (!isReserved(store, volume)) return true
    refuse()
    return undefined
  })
}

function isReserved(store: Store, volume: string): boolean {
  return reservations.has(store, volume) && isVolumeBusy(store, volume)
}
