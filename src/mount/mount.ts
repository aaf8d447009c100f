import type { KindFacts } from '../fs-group/decide.ts'
import { closing, SystemError } from '../host/host.ts'
import { type MountPoint, missingMountPoint, openMountPoint } from '../mount-table/mount-point.ts'
import { quoted, Refusal } from '../refusal/refusal.ts'
import type { MountRequest } from '../request/mount-request.ts'
import { sourceText } from '../request/source.ts'
import { forgetAfterBoot } from '../store/forget.ts'
import { releaseMount, removeVolumeLeftover } from '../store/leftovers.ts'
import { lockMount } from '../store/locks.ts'
import type { Given } from '../store/mount-record.ts'
import type { Session } from '../store/session.ts'
import { DetachedTree } from '../volume/detached-tree.ts'
import { kindOf } from '../volume/index.ts'
import { sweepStages } from '../volume/kind/staged.ts'
import { observe } from './observe.ts'
import { type MountPlan, planMount } from './plan.ts'
import { runPlan } from './run.ts'

/**
 * Mounts what the request asks for at its directory; done already is done. Afterwards the directory shows the whole
 * mount, or, with an error thrown, what it showed before.
 * @returns how the pod's group was given
 * @throws {Refusal} with a sentence for the pod's author; any other error is the system's
 */
export async function mount(session: Session, request: MountRequest): Promise<Given> {
  const { host, config } = session
  const point = openMountPoint(host, request.directory)
  if (point === undefined) throw missingMountPoint(request.directory)
  using _ = closing(host.inodes, point.parent)
  forgetAfterBoot(session)
  sweepStages(session)
  const lock = await lockMount(host, config.stateDir, point.path)
  try {
    const { given } = await mountLocked(session, { ...request, directory: point.path }, point)
    return given
  } finally {
    // A mount that failed is never unmounted: nothing may be left of it.
    releaseMount(session, point.path, lock)
  }
}

/** What a call planned and did. */
export interface Mounted {
  plan: MountPlan
  given: Given
  /** Why the health of what is mounted is unknown. */
  doubt: string | undefined
}

/** A record may speak of a kind that this version does not have: nothing is known of its data. */
function factsOf(fsType: string): KindFacts {
  const kind = kindOf(fsType)
  if (!kind) return { persistent: false, walk: 'nothing is known', hasGroupOptions: false }
  return {
    persistent: kind.persistent,
    walk: kind.walk,
    hasGroupOptions: kind.groupOptions !== undefined,
    hasDaemon: kind.hasDaemon ?? false,
  }
}

/**
 * The same under the mount's lock, `directory` being the point's real path.
 * @param options.isDry plans, and does nothing
 * @param options.isKept its record stays where the mount fails
 */
export async function mountLocked(
  session: Session,
  request: MountRequest,
  point: MountPoint,
  { isDry = false, isKept = false } = {},
): Promise<Mounted> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await mountOnce(session, request, point, isDry, isKept)
    } catch (error) {
      if (!isDeletedSource(error)) throw error
      if (attempt === MOST_ATTEMPTS) {
        throw new Refusal(
          `source ${quoted(sourceText(request.source))} was deleted again and again while it was being mounted: let it settle`,
        )
      }
    }
  }
}

/** The mount is made: what is left of another volume does not make a failure of it. */
function tidyFormer(session: Session, volume: string): void {
  try {
    removeVolumeLeftover(session, volume)
  } catch (error) {
    session.warn(`what was left of volume ${volume} stays: ${(error as Error).message}`)
  }
}

// What an AtomicWriter replaces was found, and is deleted, in the moment before it is attached.
const MOST_ATTEMPTS = 10

function isDeletedSource(error: unknown): boolean {
  return error instanceof SystemError && error.syscall === 'move_mount' && error.code === 'ENOENT'
}

async function mountOnce(
  session: Session,
  request: MountRequest,
  point: MountPoint,
  isDry: boolean,
  isKept: boolean,
): Promise<Mounted> {
  const { host } = session
  const kind = kindOf(request.fsType)
  if (!kind) throw new Error(`no such kind: ${request.fsType}`)
  const source = kind.openSource(host, request)
  using _ = closing(host.inodes, source?.handle)
  const view = await observe(session, request, kind, point, source)
  const plan = planMount(request, view, factsOf, isKept)
  session.note({ decision: plan.decision, reason: plan.reason, steps: plan.steps.map((step) => step.do) })
  if (plan.decision === 'refuse') throw new Refusal(plan.reason)
  const before: Given = view.record?.given ?? { by: 'none' }
  const { doubt } = view
  if (isDry) return { plan, given: before, doubt }
  const given = await runPlan(session, point, new DetachedTree(session, kind, request, source), plan.steps)
  if (plan.decision === 'ready') return { plan, given: before, doubt }
  // What an interrupted call had begun with another volume.
  const former = view.record?.volume
  if (former !== undefined && former !== view.source?.volume) tidyFormer(session, former)
  if (given.why !== undefined) session.note({ given: given.by, why: given.why })
  return { plan, given, doubt: undefined }
}
