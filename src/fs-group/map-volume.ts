import type { Handle, Lock } from '../host/host.ts'
import type { TreeLocation } from '../mount-table/tree-location.ts'
import { unlessDamaged } from '../store/json-record.ts'
import type { Reservation } from '../store/reservation-record.ts'
import type { Session } from '../store/session.ts'
import { hasVolumeRecord, readVolumeRecord } from '../store/volume-record.ts'
import type { Where } from '../volume/detached-tree.ts'
import { mapGroup, Unmappable } from './map-group.ts'
import { reserveVolume } from './reserve.ts'

interface Mapping {
  /** The group on disk, undefined for the root's. */
  from: number | undefined
  to: number
  /** Undefined where the volume goes with its mount, and nobody else can have it. */
  volume: string | undefined
  /** Where it lies, if the source's path does not tell. */
  location: TreeLocation | undefined
}

/**
 * Makes a detached tree, a clone of `source` where there is one, show its volume's group as another. The group on disk must stay what it is from now on: the lock
 * that is returned must be held until the mount is attached, and others see that the volume has a holder.
 * @throws {Unmappable} where this file system or this kernel cannot
 */
export async function mapVolume(
  session: Session,
  tree: Handle,
  source: Handle | undefined,
  request: Where,
  { from, to, volume, location }: Mapping,
): Promise<{ from: number; lock: Lock | undefined }> {
  const { inodes } = session.host
  for (;;) {
    const group = from ?? inodes.stat(tree).gid
    const lock = volume === undefined ? undefined : await reserve(session, request, { volume, location }, group)
    try {
      if (volume !== undefined && !isOfOneGroup(session, volume)) {
        throw new Unmappable(`a walk or a restore of it was not finished, so that its files are of several groups`)
      }
      const root = inodes.stat(tree)
      // A walk that was waited for may have given it another.
      if (from === undefined && root.gid !== group) {
        lock?.release()
        continue
      }
      if (group !== to) mapGroup(session, tree, source, group, to, request.fsType)
      return { from: group, lock }
    } catch (error) {
      lock?.release()
      throw error
    }
  }
}

/** Where the record is damaged nobody knows how far a walk has come. */
function isOfOneGroup({ host, config }: Session, volume: string): boolean {
  if (!hasVolumeRecord(host, config.stateDir, volume)) return true
  return unlessDamaged(() => readVolumeRecord(host, config.stateDir, volume))?.complete ?? false
}

/** Groups on disk may differ from pod to pod: nobody stands in the way but who is at work on the volume. */
function reserve(
  session: Session,
  { source, pod, directory }: Where,
  at: Pick<Reservation, 'volume' | 'location'>,
  group: number,
) {
  return reserveVolume(session, { ...at, source, group, pod, directory }, directory, () => {})
}
