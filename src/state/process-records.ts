import * as z from 'zod/mini'
import { quoteValue } from '../errors/refusal.ts'
import { retryUntilDefined } from '../kernel/waiting.ts'
import type { LogCursor } from '../log/log-reader.ts'
import type { ProgressListener, WalkCounts } from '../ownership/walk/report.ts'
import type { WalkResult } from '../ownership/walks.ts'
import { createStuckLockHolderCheck, isNodeLockHeld, isVolumeBusy } from './lock-holders.ts'
import { RecordKind, type RecordOfKind, type RecordReadResult } from './record.ts'
import {
  GIVEN_UP_WALK_FILE,
  locateReservationDirectory,
  locateVolumeRecords,
  type Store,
  WALK_PROGRESS_FILE,
} from './record-directories.ts'
import type { Session } from './session.ts'
import { isVolumeId } from './volume-id.ts'

// Records of running calls and servers. A killed process leaves its record behind, so most are valid only while their lock is held.

/**
 * Work of a call on a volume, shown to calls on a part of the volume or on a tree that contains it. A reservation is
 * written under the volume's lock and the node's lock for reservations, and removed under either. It is valid only
 * while the volume's lock is held.
 */
export const reservationRecords = new RecordKind({
  format: 1,
  schema: () =>
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
    }),
  ownerOf: ({ volume }) => volume,
  locate: (store, volume: string) => `${locateReservationDirectory(store)}/${volume}.json`,
  isOfThisBoot: () => true,
  isSweptAfterReboot: true,
})

export type VolumeReservation = RecordOfKind<typeof reservationRecords>

/** Lists the reservations of running calls. A crash releases the call's lock, which ends its reservation. */
export function listVolumeReservations(store: Store): ({ volume: string } & RecordReadResult<VolumeReservation>)[] {
  return listVolumesWithReservation(store)
    .filter((volume) => isVolumeBusy(store, volume))
    .map((volume) => ({ volume, ...reservationRecords.find(store, volume) }))
    .filter(({ record, problem }) => record ?? problem)
}

/** Lists all volumes that have a reservation file, complete or not, of a running or a crashed call. */
export function listVolumesWithReservation(store: Store): string[] {
  const names = store.host.files.list(locateReservationDirectory(store))
  const volumes = names.map((name) => name.replace(/\.json(\.new)?$/, ''))
  return [...new Set(volumes)].filter(isVolumeId).sort()
}

/**
 * Removes the reservations of crashed calls. Call it under the node's lock for reservations, so that no call can write
 * one meanwhile. Then the reservation of a volume whose lock is free has no owner.
 */
export function removeStaleReservations(store: Store): void {
  for (const volume of listVolumesWithReservation(store)) {
    if (!isVolumeBusy(store, volume)) reservationRecords.remove(store, volume)
  }
}

/**
 * Waits until a reservation is released. A call that has a reservation must not wait for another one; a call that holds
 * only its volume's lock may.
 * @throws {Refusal} if the volume is still walked for a call that has ended, or if the lock holder makes no progress
 */
export async function waitForReservationRelease(store: Store, volume: string): Promise<void> {
  const refuse = createStuckLockHolderCheck(store, locateVolumeRecords(store, volume))
  await retryUntilDefined(() => {
    if (!reservationRecords.has(store, volume) || !isVolumeBusy(store, volume)) return true
    refuse()
    return undefined
  })
}

/**
 * Progress of a walk or a restore of a volume, written about once a second, so a short walk writes none. It is valid
 * only while the volume's lock is held.
 */
export const walkProgressRecords = new RecordKind({
  format: 2,
  schema: () =>
    z.object({
      volume: z.string(),
      /** Pid of the process that walks. */
      pid: z.number(),
      /** Milliseconds since 1970. */
      at: z.number(),
      visited: z.number(),
      changed: z.number(),
    }),
  ownerOf: ({ volume }) => volume,
  locate: (store, volume: string) => `${locateVolumeRecords(store, volume).path}/${WALK_PROGRESS_FILE}`,
})

/** Records the last walk or restore of a volume that was given up after the full time. A completed walk removes it. */
export const givenUpWalkRecords = new RecordKind({
  format: 1,
  schema: () =>
    z.object({
      volume: z.string(),
      /** The process that walked. */
      pid: z.number(),
      /** Milliseconds since 1970. */
      at: z.number(),
    }),
  ownerOf: ({ volume }) => volume,
  locate: (store, volume: string) => `${locateVolumeRecords(store, volume).path}/${GIVEN_UP_WALK_FILE}`,
  isOfThisBoot: () => true,
})

/** Runs a walk of a volume. Reports its progress to the caller and in the state directory, and notes its result. */
export async function runReportedWalk(
  session: Session,
  volume: string,
  walk: (progress: ProgressListener) => Promise<WalkResult>,
): Promise<WalkResult> {
  const reportProgress = (counts: WalkCounts) => {
    walkProgressRecords.write(session, { volume, pid: process.pid, at: Date.now(), ...counts })
    session.progress?.(counts)
  }
  try {
    const walked = await walk(reportProgress)
    const { visited, changed, alreadyRight, left } = walked.report
    session.note({ inodes: { visited, changed, alreadyRight, left } })
    return walked
  } finally {
    walkProgressRecords.remove(session, volume)
  }
}

/** Default path of a runtime's NRI socket. */
export const NRI_SOCKET_PATH = '/var/run/nri/nri.sock'

/** State that the runtime's plugin reports to operators. It is valid only while the plugin holds its lock. */
export const nriPluginRecord = new RecordKind({
  format: 1,
  schema: () =>
    z.object({
      /** The container runtime calls the plugin. */
      isRegistered: z.boolean(),
      /** The runtime's name and version, such as `containerd v2.1.9`; '' if no runtime has connected yet. */
      runtime: z.string(),
      /** The runtime's version of NRI, if it reports one. */
      nri: z.optional(z.string()),
      /** Beginning of this state, in milliseconds since 1970. */
      since: z.number(),
      /** NRI socket of the runtime. */
      socket: z.string(),
    }),
  ownerOf: () => undefined,
  locate: ({ config }) => `${config.stateDir}/nri-plugin.json`,
})

export type NriPluginRecord = RecordOfKind<typeof nriPluginRecord>

/** Returns the state of the running plugin; undefined if none runs. */
export function findRunningPlugin(store: Store): NriPluginRecord | undefined {
  return isNodeLockHeld(store, 'nri') ? nriPluginRecord.find(store, undefined).record : undefined
}

/** Explains why containers are created without the plugin; returns undefined if the runtime calls it. */
export function explainInactivePlugin(plugin: NriPluginRecord | undefined): string | undefined {
  if (plugin === undefined) return 'no "modekeep nri" runs on this node: start it'
  if (plugin.isRegistered) return undefined
  const since = new Date(plugin.since).toISOString()
  return `"modekeep nri" waits since ${since} for a container runtime at ${quoteValue(plugin.socket)}: start it, with NRI enabled`
}

/** The counters, and the position in the log up to which they count. One file has both, so that they agree. */
export const metricsRecord = new RecordKind<{ cursor: LogCursor; totals: Readonly<Record<string, number>> }, undefined>(
  {
    format: 1,
    schema: () =>
      z.object({
        /** Position up to which the log was read. */
        cursor: z.array(z.object({ head: z.string(), offset: z.number() })),
        /** Total of each series up to that position. */
        totals: z.record(z.string(), z.number()),
      }),
    ownerOf: () => undefined,
    locate: ({ config }) => `${config.stateDir}/metrics.json`,
  },
)
