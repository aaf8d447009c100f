import { kinds } from '../filesystem/index.ts'
import { planMount } from '../plan/mount.ts'
import { Refusal } from '../protocol/refusal.ts'
import type { MountRequest } from '../protocol/request.ts'
import { readMountRecord } from '../state/mount-record.ts'
import { lockMount, releaseForGood } from './locks.ts'
import { type MountPoint, missingMountPoint, openMountPoint } from './mount-point.ts'
import { observe } from './observe.ts'
import type { Session } from './session.ts'
import { sweepAfterBoot } from './sweep.ts'
import { Transaction } from './transaction.ts'

/**
 * Mounts what the request asks for at its directory; done already is done. Afterwards the directory shows the whole
 * mount, or, with an error thrown, what it showed before.
 * @throws {Refusal} with a sentence for the pod's author; any other error is the system's
 */
export async function mount(session: Session, request: MountRequest): Promise<void> {
  const { host, config } = session
  const point = openMountPoint(host, request.directory)
  if (point === undefined) throw missingMountPoint(request.directory)
  try {
    sweepAfterBoot(session)
    const lock = await lockMount(host, config.stateDir, point.path)
    try {
      await mountLocked(session, { ...request, directory: point.path }, point)
    } finally {
      // A mount that failed is never unmounted: nothing may be left of it.
      if (readMountRecord(host, config.stateDir, point.path)) lock.release()
      else releaseForGood(host, config.stateDir, point.path, lock)
    }
  } finally {
    host.inodes.close(point.parent)
  }
}

const isPersistent = (fsType: string) => kinds.get(fsType)?.persistent ?? false

async function mountLocked(session: Session, request: MountRequest, point: MountPoint): Promise<void> {
  const { host } = session
  const kind = kinds.get(request.fsType)
  if (!kind) throw new Error(`no such kind: ${request.fsType}`)
  const source = kind.openSource(host, request)
  try {
    const plan = planMount(request, observe(session, point, source), isPersistent)
    session.note({ decision: plan.decision, reason: plan.reason, steps: plan.steps.map((step) => step.do) })
    if (plan.decision === 'refuse') throw new Refusal(plan.reason)
    await new Transaction(session, request, kind, point, source?.handle).run(plan.steps)
  } finally {
    if (source) host.inodes.close(source.handle)
  }
}
