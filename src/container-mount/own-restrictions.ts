import { closing, type Handle } from '../host/host.ts'
import { restrictionsReader } from '../mount-table/mount-restrictions.ts'
import { snapshotTable } from '../mount-table/table-snapshot.ts'
import { messageOf, quoted } from '../refusal/refusal.ts'
import { hasMountRecord } from '../store/mount-record.ts'
import type { Session } from '../store/session.ts'
import type { OwnMountsRequest } from './order.ts'
import { openRoots, openSource, partOfVolume } from './source.ts'

/**
 * Reads the restrictions (`nosuid`, `noexec`, …) of the mounts that are modekeep's own volumes, or parts of them.
 * @returns for each mount of the request its mount options. A mount that cannot be read has none, and a warning in the log
 */
export function readOwnRestrictions(session: Session, request: OwnMountsRequest): string[][] {
  const { host } = session
  const readRestrictions = restrictionsReader(host)
  const where = { ...request, table: snapshotTable(host) }
  return request.mounts.map(({ destination, source }) => {
    try {
      using handles = new DisposableStack()
      const shown = openSource(session, where, source)
      handles.use(closing(host.inodes, shown))
      if (!isOwn(session, request, source, shown, handles)) return []
      const restrictions = host.inodes.statMountPoint(shown).mountRoot ? readRestrictions(shown) : undefined
      if (restrictions !== undefined) return restrictions
      session.warn(
        `the volume at ${quoted(destination)} is not mounted at ${quoted(source)}: its mount options are unknown`,
      )
    } catch (error) {
      session.warn(`the mount options of the volume at ${quoted(destination)} could not be read: ${messageOf(error)}`)
    }
    return []
  })
}

/** Whether a mount record names the volume. Kubelet binds a part (`subPath`) by the pod's name of its volume. */
function isOwn(
  session: Session,
  request: OwnMountsRequest,
  source: string,
  shown: Handle,
  handles: DisposableStack,
): boolean {
  const { host } = session
  const volume = partOfVolume(request, source)
  if (volume === undefined) return hasMountRecord(session, host.inodes.pathOf(shown))
  const roots = [...openRoots(host, request, volume)]
  for (const root of roots) handles.use(closing(host.inodes, root))
  return roots.some((root) => hasMountRecord(session, host.inodes.pathOf(root)))
}
