import { unlessRefused } from '../../host/file-error.ts'
import type { Lock } from '../../host/host.ts'
import { Refusal } from '../../refusal/refusal.ts'
import { act, hasDirectory, type Job } from './job.ts'
import type { Places } from './places.ts'

const LOCK_SECONDS = 120
const PAUSE_MS = 100

/**
 * One installer at a time, from the sweep of what a killed one has left to the removal of what this one staged. A dry run
 * takes no lock.
 */
export async function underLock(job: Job, places: Places, work: () => void | Promise<void>): Promise<void> {
  const lock = job.command.isDry ? undefined : await takeLock(job, places.plugins)
  const clean = () => {
    if (lock) for (const path of [...temporaryIn(job, places), ...stagedIn(job, places)]) discard(job, path)
  }
  try {
    sweep(job, places)
    await work()
    clean()
  } catch (error) {
    if (!(error instanceof DriverAside)) unlessRefused(clean)
    throw error
  } finally {
    lock?.release()
  }
}

/** The driver lies where it was moved to be removed: nothing of that is left over. */
export class DriverAside extends Refusal {}

async function takeLock({ admin, tell, stop }: Job, plugins: string): Promise<Lock> {
  const until = performance.now() + LOCK_SECONDS * 1000
  for (let isFirst = true; ; isFirst = false) {
    const lock = attempt(() => admin.tryLockDirectory(plugins), plugins)
    if (lock !== undefined) return lock
    if (isFirst) tell('waiting', 'another install is running')
    if (performance.now() > until) throw new Refusal(`another install has been running for ${LOCK_SECONDS} seconds`)
    await new Promise((done) => setTimeout(done, PAUSE_MS))
    stop.throwIfAborted()
  }
}

function attempt<T>(lock: () => T, plugins: string): T {
  try {
    return lock()
  } catch (error) {
    throw new Refusal(`cannot lock ${plugins}: ${(error as Error).message}`, { cause: error })
  }
}

const temporaryIn = ({ admin }: Job, { aside }: Places) =>
  Object.values(aside).filter((path) => admin.files.stat(path, 'of a link itself'))

/** What an installer stages, by its names. */
function stagedIn({ admin: { files } }: Job, { plugins, driverDirectory }: Places): string[] {
  const of = (directory: string, form: RegExp) =>
    hasDirectory(files, directory)
      ? files
          .list(directory)
          .filter((name) => form.test(name))
          .map((name) => `${directory}/${name}`)
      : []
  const all = [...of(plugins, /^\.modekeep~fs\..{6}$/), ...of(driverDirectory, /^\.fs\..{6}$/)]
  return all.filter((path) => files.target(path) === undefined)
}

function sweep(job: Job, places: Places): void {
  for (const path of temporaryIn(job, places)) act(job, `remove ${path}`, () => job.admin.files.remove(path))
  for (const path of stagedIn(job, places)) {
    act(job, `remove ${path}, left by an interrupted install`, () => {
      discard(job, path)
      job.tell('swept', path)
    })
  }
}

/** Removes a staged file, or a staged directory with a driver in it: nothing but our own names, and through no link. */
export function discard({ admin: { files }, warn }: Job, path: string): void {
  const isStagedDirectory = (at: string) => files.target(at) === undefined && hasDirectory(files, at)
  if (!isStagedDirectory(path)) {
    files.remove(path)
    return
  }
  for (const directory of [`${path}/gone`, path].filter(isStagedDirectory)) {
    for (const name of files.list(directory)) {
      if (/^(fs|\.fs\..{6})$/.test(name)) files.remove(`${directory}/${name}`)
    }
    files.removeEmpty(directory)
  }
  if (hasDirectory(files, path)) warn(`${path} holds files that are not modekeep's: left in place`)
}
