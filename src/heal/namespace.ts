import { Refusal } from '../errors/refusal.ts'
import { listMountRecords } from '../store/mount-record.ts'
import type { Session } from '../store/session.ts'

/**
 * Refuses to run outside kubelet's mount namespace: its mounts are invisible there, or are copies with other ids, so a mount
 * in use looks unmounted.
 * @throws {Refusal} if the recorded mounts were made in another mount namespace than this process's
 */
export function refuseOtherNamespace(session: Session): void {
  const boot = session.host.bootId()
  const here = session.host.mountNamespace()
  const other = listMountRecords(session).find(
    ({ mounted, boot: of }) => of === boot && mounted !== undefined && mounted.namespace !== here,
  )
  if (other === undefined) return
  throw Refusal.of(
    'mount-namespace',
    `modekeep's mounts are in another mount namespace than this process (${other.directory} was made in ${other.mounted?.namespace}, this is ${here})`,
    "run it in kubelet's, on most nodes by nsenter --target 1 --mount",
  )
}
