import { dirname } from 'node:path'
import { sourcePath } from '../request/source.ts'
import { removeLeftovers } from '../store/leftovers.ts'
import { isMountBusy } from '../store/locks.ts'
import { listMountRecords, listUnreadableMounts, type MountRecord } from '../store/mount-record.ts'
import type { Session } from '../store/session.ts'
import { type IsSilent, silentSources } from '../volume/daemon.ts'
import { sweepStages } from '../volume/kind/staged.ts'
import { forget, type Judged, judge, judgeLocked } from './judge.ts'
import { failed, type Outcome, remount } from './remount.ts'
import type { Finding } from './state.ts'

/**
 * Repairs the mounts that are recorded: what kubelet's next call would do, without waiting for it. Mounts that a call is
 * at work on are passed over.
 * @param isDry says what would be done, and does nothing
 */
export async function healMounts(session: Session, isDry: boolean): Promise<Finding[]> {
  if (!isDry) sweepStages(session)
  const findings: Finding[] = []
  for (const { directory, problem } of listUnreadableMounts(session.host, session.config.stateDir)) {
    findings.push({ directory, pod: '', state: 'unknown', action: 'none', reason: problem.message })
  }
  const isSilent = silentSources(session)
  for (const record of listMountRecords(session.host, session.config.stateDir)) {
    const found = await healOne(session, record, isSilent, isDry)
    if (found === 'gone') continue
    const { state, action, reason } = found
    findings.push({ directory: record.directory, pod: record.pod ?? '', state, action, reason })
  }
  if (!isDry) removeLeftovers(session)
  return findings
}

/**
 * Directories whose changes may make a mount stale: the sources, those that they lie in, and with a subPath all between
 * the source and what was found there, where a link may be exchanged.
 */
export function sourceDirectories({ host, config }: Session): string[] {
  const directories = new Set<string>()
  for (const record of listMountRecords(host, config.stateDir)) {
    const source = sourcePath(record.request.source)
    if (source === undefined) continue
    for (const directory of [source, dirname(source)]) directories.add(directory)
    for (let at = dirname(record.source ?? source); at.startsWith(`${source}/`); at = dirname(at)) directories.add(at)
  }
  return [...directories].sort()
}

const BUSY: Outcome = { state: 'busy', action: 'none', reason: 'a call is at work on it' }

async function healOne(
  session: Session,
  record: MountRecord,
  isSilent: IsSilent,
  isDry: boolean,
): Promise<Outcome | 'gone'> {
  const { host, config } = session
  let seen: Outcome | undefined
  try {
    seen = await judge(session, record, (judged) => repair(session, judged, isSilent, true))
    if (seen.action === 'none' && !seen.isUnfinished) return seen
    if (isDry) return isMountBusy(host, config.stateDir, record.directory) ? BUSY : seen
    const done = await judgeLocked(session, record.directory, (judged) => repair(session, judged, isSilent, false))
    return done === 'busy' ? BUSY : done
  } catch (error) {
    return failed(seen?.state ?? 'unknown', error)
  }
}

async function repair(session: Session, judged: Judged, isSilent: IsSilent, isDry: boolean): Promise<Outcome> {
  const { state, action, reason } = judged.plan
  try {
    switch (action) {
      case 'leave':
        return { state, action: 'none', reason }
      case 'forget':
        if (!isDry) await forget(session, judged)
        return { state, action: 'forgotten', reason }
      case 'mount':
        if (!(await isSilent(judged.record))) return await remount(session, judged, isDry)
        return { state: 'unknown', action: 'none', reason: 'health unknown: the server of its source does not respond' }
    }
  } catch (error) {
    return failed(state, error)
  }
}
