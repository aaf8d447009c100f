import { Refusal } from '../refusal/refusal.ts'
import { listMountRecords } from '../store/mount-record.ts'
import type { Session } from '../store/session.ts'

/**
 * In another mount namespace than kubelet's its mounts are not seen, or are copies with other ids: what looks gone
 * there is in use.
 * @throws {Refusal} where this process is in another one than the mounts on record were made in
 */
export function refuseOtherNamespace(session: Session): void {
  const boot = session.host.bootId()
  const here = session.host.mountNamespace()
  const other = listMountRecords(session).find(
    ({ mounted, boot: of }) => of === boot && mounted !== undefined && mounted.namespace !== here,
  )
  if (other === undefined) return
  throw new Refusal(
    `modekeep's mounts are in another mount namespace than this process (${other.directory} was made in ${other.mounted?.namespace}, this is ${here}): ` +
      "run it in kubelet's, on most nodes by nsenter --target 1 --mount",
  )
}
