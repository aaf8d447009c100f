import { closing, type Handle, type Lock } from '../host/host.ts'
import { locationOfTree } from '../mount-table/tree-location.ts'
import type { WalkReport } from '../ownership/walk/report.ts'
import { restore } from '../ownership/walks.ts'
import { quoted, Refusal } from '../refusal/refusal.ts'
import { sourceText } from '../request/source.ts'
import { type MountRecord, readMountRecord, requestOf } from '../store/mount-record.ts'
import type { Reservation } from '../store/reservation-record.ts'
import type { Session } from '../store/session.ts'
import { noteWalk, openJournal, walkWith } from '../store/volume-journal.ts'
import {
  readVolumeRecord,
  removeVolumeRecord,
  textIdentity,
  type VolumeRecord,
  volumeIdentity,
  writeVolumeRecord,
} from '../store/volume-record.ts'
import { kindOf } from '../volume/index.ts'
import { openNodeDirectory } from '../volume/kind/source-path.ts'
import { mountContextOf } from '../volume/mount-context.ts'
import { holders } from './holders.ts'
import { reserveVolume } from './reserve.ts'

export function isRestorePending({ host, config }: Session, volume: string): boolean {
  return readVolumeRecord(host, config.stateDir, volume)?.restorePending ?? false
}

/**
 * Puts back what walks have changed of a volume, if a restore is pending and no mount of it is left. What cannot be
 * done now stays pending, and is done at the next unmount of the volume.
 * @param except the mount directory that is being unmounted
 * @throws {Refusal} when the source is not there or is another volume now
 */
export async function restoreVolume(session: Session, volume: string, source: string, except: string): Promise<void> {
  const { host, config } = session
  const mount = readMountRecord(host, config.stateDir, except)
  const made = await openDisk(session, volume, mount)
  let tree = made
  let lock: Lock | undefined
  try {
    const location = made === undefined ? undefined : locationOfTree(host, made)
    lock = await reserveUnheld(session, { volume, source, location }, except)
    const record = lock && readVolumeRecord(host, config.stateDir, volume)
    if (!record?.restorePending) return
    tree ??= openTree(session, volume, source)
    await restoreTree(session, tree, volume, record)
  } finally {
    if (tree !== undefined) host.inodes.close(tree)
    lock?.release()
  }
}

/**
 * Mounts once more what no directory of the node shows, for no path to lead to it.
 * @returns undefined where the source itself is the volume
 */
async function openDisk(session: Session, volume: string, mount: MountRecord | undefined): Promise<Handle | undefined> {
  const { host } = session
  const kind = mount && kindOf(mount.request.fsType)
  if (!mount || !kind || kind.root === 'source') return undefined
  const asked = requestOf(mount)
  const mountOptions = asked.mountOptions.filter((option) => option !== 'ro')
  const request = { ...asked, mountOptions, readOnly: false }
  const source = kind.openSource(host, request)
  using _ = closing(host.inodes, source?.handle)
  const tree = await kind.openTree(mountContextOf(session, request, source, undefined))
  let found: string | undefined
  try {
    found = kind.root === 'text' ? textIdentity(request) : volumeIdentity(host, tree, host.inodes.stat(tree))
    if (found === volume) return tree
  } finally {
    if (found !== volume) host.inodes.close(tree)
  }
  throw new Refusal(
    `source ${quoted(sourceText(asked.source))} is another disk than the one that was mounted: put that one back`,
  )
}

class StillHeld extends Error {}

/** Undefined: another mount of the volume is there or being made, and its unmount runs the restore. */
async function reserveUnheld(
  session: Session,
  at: Pick<Reservation, 'volume' | 'source' | 'location'>,
  except: string,
): Promise<Lock | undefined> {
  try {
    return await reserveVolume(session, at, except, (others) => {
      const [holder] = holders(others)
      if (holder)
        throw new StillHeld(`pending until ${holder.directory} is unmounted and the volume is unmounted again`)
    })
  } catch (error) {
    if (!(error instanceof StillHeld)) throw error
    session.note({ restore: error.message })
    return undefined
  }
}

/** A disk that is not mounted yet, or a directory moved away, leaves another one under the source's name. */
function openTree({ host }: Session, volume: string, source: string): Handle {
  const { handle, stat } = openNodeDirectory(host, source)
  using _ = closing(host.inodes, handle)
  if (volumeIdentity(host, handle, stat) === volume) return host.mounts.cloneTree(handle)
  throw new Refusal(`source ${quoted(source)} is another directory than the one that was mounted: put that one back`)
}

/**
 * Puts back what the journal of a volume holds. Call it under the volume's lock, with no walked mount of it left.
 * @param isForced also what its users changed since
 * @returns isDone: false while something that was met could not be put back
 */
export async function restoreTree(
  session: Session,
  tree: Handle,
  volume: string,
  record: VolumeRecord | undefined,
  isForced = false,
): Promise<{ isDone: boolean; report: WalkReport }> {
  const { host, config } = session
  const journal = openJournal(session, volume, record !== undefined)
  try {
    // Until the record is gone: a mount that comes after a death must walk again, whatever the root looks like.
    if (record) writeVolumeRecord(host, config.stateDir, { ...record, complete: false })
    const report = await walkWith(session, volume, (options) => restore(host.inodes, tree, journal, options, isForced))
    noteWalk(session, report)
    if (!isThrough(report)) return { isDone: false, report }
    const root = host.inodes.stat(tree)
    // A root that its users changed may look walked for ever: the record then says that the tree below is not. Without
    // a record the next mount walks for the journal's sake.
    if (record && journal.find(root.inode, root.born)) {
      writeVolumeRecord(host, config.stateDir, { ...record, complete: false, restorePending: false })
    } else {
      removeVolumeRecord(host, config.stateDir, volume)
    }
    return { isDone: true, report }
  } finally {
    journal.close()
  }
}

const DONE_WITH = new Set(['changed since by its user', 'privileges not given back', 'symlink', 'device'])

/** Everything was met, and nothing but its users' own changes kept it from being put back. */
function isThrough({ left }: WalkReport): boolean {
  return Object.keys(left).every((reason) => DONE_WITH.has(reason))
}
