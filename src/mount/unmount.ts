import { isRestoreOwed, restoreVolume } from '../fs-group/restore-volume.ts'
import { isDiskError } from '../host/file-error.ts'
import type { Host } from '../host/host.ts'
import { isKubeletVolume } from '../mount-table/kubelet-volume.ts'
import { isEmptyFile, type MountPoint, openMountPoint, statPoint } from '../mount-table/mount-point.ts'
import { Refusal, show } from '../refusal/refusal.ts'
import { lockMount, releaseForGood } from '../store/locks.ts'
import { type MountRecord, readMountRecord, removeMountRecord } from '../store/mount-record.ts'
import type { Session } from '../store/session.ts'
import { tidyVolume } from '../store/tidy-volume.ts'
import { endDaemon, endStopped, hangingDaemon } from '../volume/daemon.ts'
import { sweepStages } from '../volume/kind/staged.ts'
import { detachAll } from './attach.ts'
import { setTarget } from './mount-target.ts'
import { planUnmount } from './plan-unmount.ts'
import type { Step } from './step.ts'

/**
 * Removes every mount at the directory and what is remembered of it. Nothing there is a success. What kubelet asks of
 * it comes first: a damaged journal, a missing source or a state directory whose disk is full, read-only or broken is
 * told, and does not keep a pod from going.
 */
export async function unmount(session: Session, directory: string): Promise<void> {
  const { host, config } = session
  const point = openMountPoint(host, directory)
  const path = point?.path ?? directory
  try {
    const lock = await asFarAsTheDiskGoes(session, () => lockMount(host, config.stateDir, path))
    try {
      await detachAndForget(session, point, path, lock !== undefined)
      if (lock) sweepStages(session)
    } finally {
      if (lock) await asFarAsTheDiskGoes(session, () => releaseForGood(host, config.stateDir, path, lock))
    }
  } finally {
    if (point) host.inodes.close(point.parent)
  }
}

async function detachAndForget(
  session: Session,
  point: MountPoint | undefined,
  path: string,
  isLocked: boolean,
): Promise<void> {
  const { host, config } = session
  const record = await asFarAsTheDiskGoes(session, () => readMountRecord(host, config.stateDir, path))
  refuseForeign(host, point, record)
  const isOwed = () => record !== undefined && isRestoreOwed(session, record.volume)
  const planned = planUnmount(record, (await asFarAsTheDiskGoes(session, isOwed)) ?? false)
  // A restore stays owed, and the record is for that mount only.
  const steps = isLocked ? planned : planned.filter((step) => step.do === 'detach-all' || step.do === 'set-target')
  session.note({ decision: record ? 'unmount' : 'nothing recorded', steps: steps.map((step) => step.do) })
  const hanging = point && (await hangingDaemon(session, point, record))
  if (point && hanging !== undefined) host.mounts.detach(point.parent, point.name, true)
  endDaemon(session, hanging)
  for (const step of steps) await apply(session, step, point, path, record !== undefined)
  if (record) endStopped(session, record)
}

/**
 * Forgets a mount whose unmount never came, under its lock, and leaves a directory to mount on. Nothing is unmounted.
 * @param pays puts the volume back if that is owed
 */
export async function forgetLocked(
  session: Session,
  point: MountPoint | undefined,
  record: MountRecord,
  pays: boolean,
): Promise<void> {
  const { directory } = record
  const steps = planUnmount(record, pays && isRestoreOwed(session, record.volume)).filter(
    (step) => step.do !== 'detach-all',
  )
  for (const step of steps) {
    if (step.do === 'forget') forget(session, step.volume, directory)
    else await apply(session, step, point, directory, true)
  }
  endStopped(session, record)
}

/** @throws {FileError} and the record stays, by which the next call finds what could not be removed */
function forget(session: Session, volume: string, path: string): void {
  tidyVolume(session, volume)
  removeMountRecord(session.host, session.config.stateDir, path)
}

/** Undefined, and a warning, where the disk of the state directory fails. */
async function asFarAsTheDiskGoes<T>(session: Session, work: () => T | Promise<T>): Promise<T | undefined> {
  try {
    return await work()
  } catch (error) {
    if (!isDiskError(error)) throw error
    session.warn(`unmounting all the same: ${(error as Error).message}`)
    return undefined
  }
}

function refuseForeign(host: Host, point: MountPoint | undefined, record: MountRecord | undefined): void {
  if (record !== undefined || point === undefined || isKubeletVolume(point.path)) return
  const there = statPoint(host, point)
  if (there !== 'broken' && !there?.mountRoot) return
  throw new Refusal(
    `what is mounted at ${show(point.path)} is not modekeep's, and it is no volume directory of kubelet's: use umount(8)`,
  )
}

async function apply(
  session: Session,
  step: Step,
  point: MountPoint | undefined,
  path: string,
  isKnown: boolean,
): Promise<void> {
  switch (step.do) {
    case 'detach-all':
      if (point) detachAll(session.host, point)
      return
    case 'set-target':
      if (point && (isKubeletVolume(path) || isKnown)) directoryAgain(session.host, point)
      return
    case 'restore-volume':
      return restoreQuietly(session, step.volume, step.source, path)
    case 'forget':
      return asFarAsTheDiskGoes(session, () => forget(session, step.volume, path))
    default:
      throw new Error(`step ${step.do} is not part of an unmount`)
  }
}

/** A file that a volume lay on; what is missing stays so, and what else is there was made by somebody else. */
function directoryAgain(host: Host, point: MountPoint): void {
  const stat = statPoint(host, point)
  if (stat !== undefined && stat !== 'broken' && isEmptyFile(stat)) setTarget(host, point, 'directory')
}

async function restoreQuietly(session: Session, volume: string, source: string, path: string): Promise<void> {
  try {
    await restoreVolume(session, volume, source, path)
  } catch (error) {
    session.warn(`volume not restored, tried again at its next unmount: ${(error as Error).message}`)
  }
}
