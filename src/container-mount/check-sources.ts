import { closing } from '../host/host.ts'
import { snapshotTable } from '../mount-table/table-snapshot.ts'
import type { Session } from '../store/session.ts'
import type { ContainerCloneRequest } from './order.ts'
import { openSource } from './source.ts'

/** Opens and stats each source of a container. @throws what the first of them fails with */
export function checkSources(session: Session, order: ContainerCloneRequest): void {
  const { host } = session
  const where = { ...order, table: snapshotTable(host) }
  for (const { source } of order.clones) {
    const opened = openSource(session, where, source)
    using _ = closing(host.inodes, opened)
    host.inodes.stat(opened)
  }
}
