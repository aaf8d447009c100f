import { formatError, quoted } from '../errors/refusal.ts'
import { deferClose, type Handle } from '../host/host.ts'
import { createMountRestrictionsReader } from '../mount-table/mount-restrictions.ts'
import { snapshotTable } from '../mount-table/table-snapshot.ts'
import { hasMountRecord } from '../store/mount-record.ts'
import type { Session } from '../store/session.ts'
import type { OwnMountsRequest } from './clone-request.ts'
import { findSubPathVolume, openSource, openVolumeRoots } from './clone-source.ts'

/**
 * Reads the restrictions (`nosuid`, `noexec`, …) of the mounts that are modekeep's own volumes, or parts of them.
 * @returns the mount options of each mount of the request. A mount that cannot be read has none, and the log has a warning
 */
export function readOwnRestrictions(session: Session, request: OwnMountsRequest): string[][] {
  const { host } = session
  const readRestrictions = createMountRestrictionsReader(host)
  const context = { ...request, table: snapshotTable(host) }
  return request.mounts.map(({ destination, source }) => {
    try {
      using handles = new DisposableStack()
      const shown = openSource(session, context, source)
      handles.use(deferClose(host.inodes, shown))
      if (!hasOwnRecord(session, request, source, shown, handles)) return []
      const restrictions = host.inodes.statMountPoint(shown).mountRoot ? readRestrictions(shown) : undefined
      if (restrictions !== undefined) return restrictions
      session.warn(
        `the volume at ${quoted(destination)} is not mounted at ${quoted(source)}: its mount options are unknown`,
      )
    } catch (error) {
      session.warn(`the mount options of the volume at ${quoted(destination)} could not be read: ${formatError(error)}`)
    }
    return []
  })
}

/** Returns whether the volume has a mount record. The path of a `subPath` contains the pod's name of its volume. */
function hasOwnRecord(
  session: Session,
  request: OwnMountsRequest,
  source: string,
  shown: Handle,
  handles: DisposableStack,
): boolean {
  const { host } = session
  const volume = findSubPathVolume(request, source)
  if (volume === undefined) return hasMountRecord(session, host.inodes.pathOf(shown))
  const roots = [...openVolumeRoots(host, request, volume)]
  for (const root of roots) handles.use(deferClose(host.inodes, root))
  return roots.some((root) => hasMountRecord(session, host.inodes.pathOf(root)))
}
