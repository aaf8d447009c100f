import { formatError, quoted } from '../errors/refusal.ts'
import type { Handle } from '../host/host.ts'
import { RESPONSE_TIMEOUT_MS } from '../mount-table/responsiveness.ts'
import type { Session } from '../store/session.ts'
import { formatGivenUpLookup } from '../worker/given-up.ts'
import { runIsolated } from '../worker/isolated.ts'
import {
  findStaleBinds,
  healSubPaths,
  healSubPathsOfVolume,
  lockSubPaths,
  type StaleBind,
  type SubPathFinding,
  type SubPathTask,
  toBusyFinding,
  toSkipped,
  toSubPathFinding,
} from './sub-paths.ts'

/**
 * Like `healSubPaths`. If this process must not wait for a locked directory, each volume is healed in a process of its
 * own, concurrently.
 */
export async function healSubPathsIsolated(
  session: Session,
  kubeletDir: string | undefined,
  { dryRun }: { dryRun: boolean },
): Promise<SubPathFinding[]> {
  if (!session.isolatesWalks) return healSubPaths(session, kubeletDir, { dryRun })
  const stale = findStaleBinds(session, kubeletDir)
  if (stale.length === 0) return []
  using lock = dryRun ? undefined : lockSubPaths(session)
  if (lock === undefined && !dryRun) return stale.map(toBusyFinding)
  const volumes = Map.groupBy(stale, ({ volumeDirectory }) => volumeDirectory)
  const found = [...volumes].map(([volumeDirectory, binds]) =>
    healVolume(session, { kubeletDir, volumeDirectory, dryRun }, binds),
  )
  return (await Promise.all(found)).flat()
}

async function healVolume(
  session: Session,
  about: SubPathTask,
  binds: readonly StaleBind[],
): Promise<SubPathFinding[]> {
  const { volumeDirectory } = about
  try {
    return await runIsolated(session, {
      work: 'sub-paths',
      about,
      owner: `directory ${quoted(volumeDirectory)}`,
      patienceMs: RESPONSE_TIMEOUT_MS,
      givenUp: (seconds, waiting, pid) => formatGivenUpLookup(volumeDirectory, seconds, pid, waiting),
    })
  } catch (error) {
    return binds.map((bind) => toSubPathFinding(bind, toSkipped(formatError(error))))
  }
}

/** Heals the binds of one volume in the isolated process. */
export async function runSubPathTask(session: Session, _: Handle, about: SubPathTask): Promise<SubPathFinding[]> {
  return healSubPathsOfVolume(session, about)
}
