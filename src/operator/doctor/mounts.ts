import { healMounts } from '../../heal/heal.ts'
import { refuseOtherNamespace } from '../../heal/namespace.ts'
import type { Finding } from '../../heal/state.ts'
import { parseMountinfo } from '../../mount-table/mountinfo.ts'
import { refusalOf } from '../../refusal/refusal.ts'
import { listMountRecords, listUnreadableMounts } from '../../store/mount-record.ts'
import type { Session } from '../../store/session.ts'
import { type CheckFinding, findingsOf } from './findings.ts'

const { ok, warning, fault } = findingsOf('mounts')

/** A volume of this driver, in kubelet's directories. */
const OURS = /\/pods\/[^/]+\/volumes\/modekeep~fs\/[^/]+$/

/** Records against mounts, both ways. */
export async function mountFindings(session: Session): Promise<CheckFinding[]> {
  const { host, config } = session
  const elsewhere = refusalOf(() => refuseOtherNamespace(session))
  if (elsewhere !== undefined)
    return [fault(elsewhere, "call it in kubelet's mount namespace: nsenter --target 1 --mount")]
  const records = listMountRecords(host, config.stateDir)
  const unreadable = new Map(
    listUnreadableMounts(host, config.stateDir).map((mount) => [mount.directory, mount.problem]),
  )
  const recorded = new Set([...records.map(({ directory }) => directory), ...unreadable.keys()])
  // What cannot be read is told once, with its way out.
  const found = (await healMounts(session, true)).filter(({ directory }) => !unreadable.has(directory))
  const healthy = found.filter(({ state }) => state === 'healthy').length
  const mounted = new Set(parseMountinfo(host.mounts.table()).map(({ mountPoint }) => mountPoint))
  const unknown = [...mounted].filter((path) => OURS.test(path) && !recorded.has(path))
  return [
    ok(`${healthy} of ${records.length} recorded mounts are healthy`),
    ...found.filter(({ state, reason }) => reason !== '' && state !== 'busy').map(unwell),
    ...[...unreadable].map(([directory, problem]) =>
      fault(`${directory}: ${problem.message}`, 'delete its pod: its unmount works without a record, which stays'),
    ),
    ...unknown.map((path) =>
      warning(
        `${path} is mounted without a record`,
        "nothing, if its pod is to stay: its unmount works; kubelet's next mount call replaces it",
      ),
    ),
  ]
}

function unwell({ directory, state, action, reason }: Finding): CheckFinding {
  const text = `${directory} is ${state}: ${reason}`
  if (action === 'failed') return fault(text, 'remove the cause, then run modekeep heal')
  if (action === 'none') return warning(text, 'what the reason says')
  return warning(text, action === 'forgotten' ? 'modekeep gc' : 'modekeep heal')
}
