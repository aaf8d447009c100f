import { dirname } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { findPodDirectory } from '../mount-table/kubelet-volume.ts'
import { parseMountinfo } from '../mount-table/mountinfo.ts'
import { getSourcePath } from '../request/source.ts'
import { removeLeftovers } from '../store/locks.ts'
import { listMountRecords, listMounts, listUnrecordedMounts } from '../store/mount-record.ts'
import type { Session } from '../store/session.ts'
import { sweepStages } from '../volume/kind/staged.ts'
import { createSourceCheck, needsIsolation } from '../volume/unresponsive-source.ts'
import { decideState, toFinding, toUnreadableFinding, UNRECORDED_MOUNT } from './find-state.ts'
import { type HealOutcome, healOne, IN_PROGRESS } from './heal-record.ts'
import { Kubelets } from './kubelets.ts'
import type { Finding } from './state.ts'

/** Longest time for which the repair of a local volume waits for the one before. */
const MAX_TURN_MS = 1000

const UNDER_REPAIR: HealOutcome = { ...IN_PROGRESS, reason: 'it is being repaired' }

/**
 * Repairs the recorded mounts as kubelet's next call would, without waiting for that call. Mounts that a call uses are
 * skipped.
 * @param isDry reports the repairs, and changes nothing
 * @param patience milliseconds for one repair: a longer one continues, and counts as in progress. Undefined: waits for all
 * @param kubelets the answers of kubelets to earlier heals of this process
 */
export async function healMounts(
  session: Session,
  isDry: boolean,
  patience?: number,
  kubelets = new Kubelets(),
): Promise<Finding[]> {
  if (!isDry) sweepStages(session)
  const isUnresponsive = createSourceCheck(session)
  const mounts = listMounts(session)
  const repairs = new Map<string, Promise<unknown>>()
  // Checks run concurrently, so that an unresponsive server delays no other mount. Repairs run in turn for
  // all local volumes, and for each other source.
  const outcomes = await Promise.all(
    mounts.map(async ({ record }) => {
      if (record === undefined) return undefined
      const { outcome: seen, isFinal } = await decideState(session, record, isUnresponsive, {
        isDry,
        patience,
        kubelets,
      })
      if (isFinal || seen === 'gone') return seen
      const { request } = record
      const isLocal = !needsIsolation(session, request)
      const turn = isLocal ? '' : JSON.stringify(request.source)
      const before = repairs.get(turn) ?? Promise.resolve()
      const repaired = before.then(() => healOne(session, record, seen.state, isUnresponsive))
      // A directory of a local volume may be locked, so other repairs wait for it only for a limited time.
      repairs.set(
        turn,
        isLocal ? Promise.race([repaired, setTimeout(MAX_TURN_MS, undefined, { ref: false })]) : repaired,
      )
      if (patience === undefined) return repaired
      return Promise.race([repaired, setTimeout(patience, UNDER_REPAIR, { ref: false })])
    }),
  )
  const findings = mounts.flatMap(({ directory, record, problem }, index): Finding | [] => {
    const outcome = outcomes[index]
    if (problem) return toUnreadableFinding(directory, problem)
    return (record && outcome && toFinding(record, outcome)) ?? []
  })
  if (!isDry) removeLeftovers(session)
  return [...findings, ...findUnrecorded(session, new Set(findings.map(({ directory }) => directory)))]
}

/** @param known directories that have a finding already */
function findUnrecorded(session: Session, known: ReadonlySet<string>): Finding[] {
  const table = parseMountinfo(session.host.mounts.table())
  return listUnrecordedMounts(session, table)
    .filter((directory) => !known.has(directory))
    .map((directory) => ({ directory, ...UNRECORDED_MOUNT }))
}

/**
 * A pod's author chooses the depth of a subPath, and the kernel limits the number of watched directories per user. The next
 * periodic heal finds a link that is replaced above these levels.
 */
const MAX_WATCHED_LEVELS = 32

/**
 * Lists the directories whose changes may make a mount stale: of pods with mapped groups, the sources, and their parents.
 * With a subPath these include all directories between the source and its target, where a link may be replaced.
 */
export function listSourceDirectories(session: Session): string[] {
  const directories = new Set<string>()
  for (const record of listMountRecords(session)) {
    // Kubelet writes there, after the call that mapped, whether the pod has a user namespace.
    const pod = record.given.by === 'idmap' ? findPodDirectory(record.directory) : undefined
    if (pod !== undefined) directories.add(pod)
    const source = getSourcePath(record.request.source)
    if (source === undefined) continue
    for (const directory of [source, dirname(source)]) directories.add(directory)
    let at = dirname(record.source ?? source)
    for (let level = 0; level < MAX_WATCHED_LEVELS && at.startsWith(`${source}/`); level++) {
      directories.add(at)
      at = dirname(at)
    }
  }
  return [...directories].sort()
}
