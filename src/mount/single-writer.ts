import { quoted, Refusal } from '../errors/refusal.ts'
import { isLiveMount } from '../fs-group/holders.ts'
import { parseMountinfo } from '../mount-table/mountinfo.ts'
import type { MountRequest } from '../request/mount-request.ts'
import { acquireRecordLock, tryAcquireRecordLock } from '../store/locks.ts'
import { findMounts, type MountRecord } from '../store/mount-record.ts'
import { locatePublicationLock } from '../store/record-directories.ts'
import type { Session } from '../store/session.ts'

/**
 * Locks a volume that only one target may show, until its mount is attached. Concurrent publications of one volume wait for
 * each other here, so the later one sees the mount of the earlier one.
 * @param volume the identity of the mounted volume; undefined if only its mount has one
 * @param isPatient if false, returns 'busy' if another call has the lock
 * @returns undefined if any number of targets is allowed
 * @throws {Refusal} that names the target that shows the volume
 */
export async function lockSingleWriter(
  session: Session,
  { directory, publication }: MountRequest,
  volume: string | undefined,
  isPatient: boolean,
): Promise<Disposable | 'busy' | undefined> {
  if (!publication?.isSingleWriter) return undefined
  const place = locatePublicationLock(session, volume === undefined ? `id:${publication.volumeId}` : `volume:${volume}`)
  const held = isPatient ? await acquireRecordLock(session, place) : tryAcquireRecordLock(session, place)
  if (held === undefined) return 'busy'
  const holder = findPublications(session, publication.volumeId, volume).find(
    (record) => record.directory !== directory,
  )
  if (holder === undefined) return held
  held[Symbol.dispose]()
  throw Refusal.of(
    'csi-single-writer',
    `volume ${quoted(publication.volumeId)} is published at ${holder.directory} (pod ${holder.pod ?? 'unknown'}), and its access mode SINGLE_NODE_SINGLE_WRITER (ReadWriteOncePod) allows one target`,
    'delete that pod, or use another access mode',
  )
}

/** Finds the publications of a volume that are mounted now. */
function findPublications(session: Session, volumeId: string, volume: string | undefined): MountRecord[] {
  const points = new Set(parseMountinfo(session.host.mounts.table()).map(({ mountPoint }) => mountPoint))
  return findMounts(session, points).flatMap(({ record }) => {
    if (record?.lifecycle === undefined) return []
    const isSame = record.publication?.volumeId === volumeId || (volume !== undefined && record.volume === volume)
    return isSame && isLiveMount(session, record) ? [record] : []
  })
}
