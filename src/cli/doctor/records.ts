import { parseSize } from '../../config/defaults.ts'
import { formatReasonWithCode } from '../../errors/fault.ts'
import { catchRefusalMessage } from '../../errors/refusal.ts'
import { parseMountinfo } from '../../kernel/mount-table/mountinfo.ts'
import { createPathLookups, type PathLookups } from '../../kernel/mount-table/responsiveness.ts'
import { collectGarbage } from '../../repair/garbage.ts'
import { healMounts, isUnmountComplete } from '../../repair/heal.ts'
import { isFaultyState, refuseOtherMountNamespace } from '../../repair/state.ts'
import { createContainerExistenceCheck, listContainerRecords } from '../../state/container-record.ts'
import { explainOtherDiskAtPath } from '../../state/find-volume.ts'
import { isVolumeBusy } from '../../state/lock-holders.ts'
import { listReadableMountRecords, listRecordedMounts } from '../../state/mount-record.ts'
import { listVolumesWithRecords, type Store } from '../../state/record-directories.ts'
import type { Session } from '../../state/session.ts'
import { isTextVolumeId } from '../../state/volume-id.ts'
import { computeMaxRecordBytes, measureAllRecords, roundUpToMib } from '../../state/volume-journal.ts'
import { findVolumeNameNotice } from '../../state/volume-notices.ts'
import {
  listRootSetGidVolumes,
  rootSetGidRecords,
  type VolumeRecord,
  volumeRecords,
} from '../../state/volume-record.ts'
import { findHiddenMounts, formatHiddenMounts } from '../node-state/hidden-mounts.ts'
import { findJournalFault } from '../node-state/recorded-walk.ts'
import {
  type CheckResult,
  createFaultResult,
  createOkResult,
  createUnresponsiveWarning,
  createWarningResult,
} from './findings.ts'

/** Compares records with mounts, in both directions. */
export async function* checkRecordedMounts(session: Session): AsyncGenerator<CheckResult> {
  const namespaceRefusal = catchRefusalMessage(() => refuseOtherMountNamespace(session))
  if (namespaceRefusal !== undefined) {
    return yield createFaultResult(namespaceRefusal, "call it in kubelet's mount namespace: nsenter --target 1 --mount")
  }
  const recorded = new Map(listRecordedMounts(session).map((mount) => [mount.directory, mount]))
  // An unreadable record is reported once, below, with its remedy.
  const found = (await healMounts(session, true)).filter((finding) => {
    const { record, problem } = recorded.get(finding.directory) ?? {}
    return problem === undefined && !(record && isUnmountComplete(record, finding))
  })
  const healthy = found.filter(({ state }) => state === 'healthy').length
  const readable = [...recorded.values()].filter(({ problem }) => problem === undefined).length
  yield createOkResult(`${healthy} of ${readable} recorded mounts are healthy`)
  for (const finding of found) {
    const { directory, state, action } = finding
    if (!isFaultyState(state)) continue
    const text = `${directory} is ${state}: ${formatReasonWithCode(finding)}`
    if (action === 'failed') yield createFaultResult(text, 'remove the cause, then run modekeep heal')
    else if (action === 'none') yield createWarningResult(text, 'what the reason says')
    else yield createWarningResult(text, action === 'forgotten' ? 'modekeep gc' : 'modekeep heal')
  }
  for (const { directory, problem } of recorded.values()) {
    const remedy = 'delete its pod: its unmount works without a record, which stays'
    if (problem !== undefined) yield createFaultResult(`${directory} is unknown: ${problem.message}`, remedy)
  }
}

/** Mapped volumes whose roots have no set-gid bit, and bits that are still to be removed. */
export function* checkRootSetGidBits(session: Session): Generator<CheckResult> {
  const mounts = listReadableMountRecords(session)
  const clones = listContainerRecords(session).flatMap(({ record }) => record?.volumes ?? [])
  const plain = [
    ...mounts.filter(({ given }) => given.by === 'idmap' && given.hasPlainRoot),
    ...clones.filter(({ hasPlainRoot }) => hasPlainRoot),
  ]
  if (plain.length > 0) {
    const text = `mapped volumes whose root has no set-gid bit: ${plain.length}, such as ${plain[0]?.source}: what root creates there does not get the group of the pod`
    yield createWarningResult(
      text,
      'option "setGid" or annotation modekeep/set-gid "root", or chmod g+s of the root; modekeep status has all of them',
    )
  }
  for (const volume of listRootSetGidVolumes(session)) {
    const { record } = rootSetGidRecords.find(session, volume)
    const isUsed =
      mounts.some((mount) => mount.volume === volume) || clones.some(({ rootVolume }) => rootVolume === volume)
    if (record === undefined || isUsed) continue
    yield createWarningResult(
      `the set-gid bit that modekeep set on the root of ${record.source} is not removed yet`,
      'modekeep gc',
    )
  }
}

/** Warns of mounts inside sources that pods do not see. A pod that writes there creates its files beneath the mount. */
export function* checkHiddenMounts(session: Session): Generator<CheckResult> {
  const records = listReadableMountRecords(session)
  const hidden = findHiddenMounts(session, records)
  for (const { directory, source, request } of records) {
    const mounts = hidden.get(directory)
    if (mounts === undefined) continue
    const text = `${directory}: mounts inside of its source ${source} are hidden from the pod: ${formatHiddenMounts(mounts)}`
    if (request.submounts === 'hide') yield createOkResult(text)
    else
      yield createWarningResult(
        text,
        'delete the pod, and give it option "submounts", or such a mount as a source of its own',
      )
  }
}

/** Checks the container records of the runtime's plugin. */
export function* checkContainerRecords(store: Store): Generator<CheckResult> {
  const isThere = createContainerExistenceCheck(store)
  for (const { container, problem } of listContainerRecords(store)) {
    if (problem === undefined) continue
    const remedy = isThere(container)
      ? 'what it says: until then no volume is given another group, as the container may rely on the one it has'
      : 'modekeep gc: nothing of the container is there'
    yield createFaultResult(problem.message, remedy)
  }
}

/** Reports how much of the node's memory tmpfs volumes may take. */
export function* checkTmpfsMemory(session: Session): Generator<CheckResult> {
  const { tmpfsMaxSize } = session.config
  const volumes = listReadableMountRecords(session).filter(({ request }) => request.fsType === 'tmpfs')
  const directories = new Set(volumes.map(({ directory }) => directory))
  const rows = parseMountinfo(session.host.mounts.table()).filter(
    ({ fsType, mountPoint }) => fsType === 'tmpfs' && directories.has(mountPoint),
  )
  if (rows.length === 0) return
  const sizes = rows.map(({ superOptions }) => parseSize(superOptions.join().match(/\bsize=(\w+)/)?.[1] ?? ''))
  const total = sizes.reduce((sum: number, size) => sum + (size ?? 0), 0)
  const text = `volumes in memory (tmpfs): ${rows.length}, which may take ${Math.ceil(total / 2 ** 20)} MiB`
  const larger = sizes.filter((size) => size === undefined || size > (parseSize(tmpfsMaxSize) ?? 0)).length
  if (larger === 0) return yield createOkResult(text)
  const remedy = 'delete their pods, so that new ones get less; or raise tmpfsMaxSize'
  yield createWarningResult(`${text}; ${larger} may take more than tmpfsMaxSize (${tmpfsMaxSize})`, remedy)
}

/** The used share of the quota that causes a warning. */
const QUOTA_WARNING_SHARE = 0.8

/** Checks the records of volumes, and reports leftovers. */
export async function* checkRecordedVolumes(session: Session): AsyncGenerator<CheckResult> {
  const volumes = listVolumesWithRecords(session)
  const found = await collectGarbage(session, { isDry: true, forget: undefined })
  const leftovers = found.filter(({ action }) => action === 'removed').length
  yield createOkResult(`volumes on record: ${volumes.length}`)
  yield* checkStateQuota(session)
  const lookups = createPathLookups(session)
  for (const volume of volumes) {
    const source = volumeRecords.find(session, volume).record?.source
    if (source?.startsWith('/') && (await lookups.isUnresponsive(source))) yield createUnresponsiveWarning(source)
    yield* await checkRecordedVolume(session, volume, lookups)
  }
  if (leftovers > 0)
    yield createWarningResult(
      `leftovers in ${session.config.stateDir}: ${leftovers}`,
      'modekeep gc (--dry-run lists them)',
    )
}

function* checkStateQuota(session: Session): Generator<CheckResult> {
  const most = computeMaxRecordBytes(session)
  if (most === undefined) return
  const { bytes, largest } = measureAllRecords(session)
  const text = `the records of all volumes take ${roundUpToMib(bytes)} MiB of the ${roundUpToMib(most)} MiB that they may take`
  if (bytes <= QUOTA_WARNING_SHARE * most) return yield createOkResult(text)
  yield createWarningResult(
    text,
    `modekeep gc; modekeep restore ${largest?.volume} puts back the volume that takes most`,
  )
}

async function checkRecordedVolume(session: Session, volume: string, lookups: PathLookups): Promise<CheckResult[]> {
  if (isVolumeBusy(session, volume)) return []
  const damage = findJournalFault(session, volume)
  if (damage !== undefined) {
    return [
      createFaultResult(
        damage,
        `what it says; "modekeep gc --forget ${volume}" removes the record of a volume that is gone`,
      ),
    ]
  }
  const { record, problem } = volumeRecords.find(session, volume)
  if (problem !== undefined) {
    const remedy = 'modekeep restore DIR, with its directory, puts it back; then walk it again'
    return [createFaultResult(`the record of volume ${volume} cannot be read`, remedy)]
  }
  if (record === undefined) return []
  const named = await checkVolumeName(session, record, lookups)
  return [...named, ...(await checkVolumeRecord(session, record, lookups))]
}

/** Reports a record that uses a volume name of another kernel. */
async function checkVolumeName(session: Session, record: VolumeRecord, lookups: PathLookups): Promise<CheckResult[]> {
  const notice = await findVolumeNameNotice(session, record, lookups)
  if (notice === undefined) return []
  const text = `volume ${record.volume}: ${notice.text}`
  if (notice.state === 'used') return [createOkResult(text)]
  return [createWarningResult(text, 'what it says')]
}

async function checkVolumeRecord(session: Session, record: VolumeRecord, lookups: PathLookups): Promise<CheckResult[]> {
  const { volume, source, group, complete, hasEnded, left, restorePending } = record
  const isUsed = listReadableMountRecords(session).some((mount) => mount.volume === volume && mount.ended === undefined)
  if (left !== undefined && left > 0) {
    const text = `${source} was put back, but ${left} of its files and directories stay as their users changed them`
    return [
      createWarningResult(
        text,
        `modekeep restore ${volume} --force, or modekeep gc --forget ${volume} to leave them so`,
      ),
    ]
  }
  if (left !== undefined || isUsed || (complete && !restorePending)) return []
  const other = await explainOtherDiskAtPath(session, volume, lookups)
  if (other !== undefined) {
    const what = restorePending
      ? `the restore of ${source} is pending`
      : `a walk or restore of ${source} was not finished`
    const remedy = `put the other one back; or modekeep restore DIR --force, with its directory, or modekeep gc --forget ${volume}`
    return [createWarningResult(`${what}, but ${other}`, remedy)]
  }
  if (restorePending) {
    // A server's volume is restored through a mount of it.
    const remedy = isTextVolumeId(volume)
      ? `mount it in a pod again, or by hand and then call modekeep restore ${volume}`
      : `modekeep restore ${volume}, or mount it in a pod again`
    return [createWarningResult(`the restore of ${source} is pending`, remedy)]
  }
  const remedy = `modekeep apply ${source} --fsgroup ${group}, or modekeep restore ${volume}`
  const text = hasEnded
    ? `directories of ${source} were moved or deleted while it was walked, so some may lack group ${group}`
    : `a walk or restore of ${source} was not finished`
  return [createWarningResult(text, remedy)]
}
