import { Refusal } from '../../errors/refusal.ts'
import type { Lock } from '../../host/host.ts'
import { type InstallSite, takeStep } from './site.ts'

const LOCK_SECONDS = 120
const PAUSE_MS = 100

/** Runs one installer at a time, after it has removed leftovers of a killed one. A dry run takes no lock. */
export async function runLocked(site: InstallSite, work: () => void | Promise<void>): Promise<void> {
  const isLocked = !site.command.isDry && site.files.hasDirectory(site.plugins)
  using _ = isLocked ? await takeLock(site) : undefined
  removeInstallLeftovers(site)
  await work()
}

async function takeLock({ admin, plugins, report, stop }: InstallSite): Promise<Lock> {
  const until = performance.now() + LOCK_SECONDS * 1000
  for (let isFirst = true; ; isFirst = false) {
    try {
      const lock = admin.tryLockDirectory(plugins)
      if (lock !== undefined) return lock
    } catch (error) {
      throw new Refusal(`cannot lock ${plugins}: ${(error as Error).message}`, { cause: error })
    }
    if (isFirst) report('waiting', 'another install is running')
    if (performance.now() > until) throw new Refusal(`another install has been running for ${LOCK_SECONDS} seconds`)
    await new Promise((done) => setTimeout(done, PAUSE_MS))
    stop.throwIfAborted()
  }
}

/** Removes temporary and staged files of an installer, by their names. */
export function removeInstallLeftovers(site: InstallSite): void {
  const { files, plugins, driverDirectory, aside } = site
  for (const path of Object.values(aside).filter((path) => files.stat(path, 'of a link itself'))) {
    takeStep(site, `remove ${path}`, () => files.remove(path))
  }
  const stagedIn = (directory: string, form: RegExp) => {
    const names = files.list(directory).filter((name) => form.test(name))
    return names.map((name) => `${directory}/${name}`).filter((path) => files.target(path) === undefined)
  }
  for (const path of [...stagedIn(plugins, /^\.modekeep~fs\..{6}$/), ...stagedIn(driverDirectory, /^\.fs\..{6}$/)]) {
    takeStep(site, `remove ${path}, left by an interrupted install`, () => removeStaged(site, path), 'swept', path)
  }
}

/** Removes a staged file, or a staged directory with its driver. Removes modekeep's own names only, and follows no link. */
export function removeStaged({ files, warn }: InstallSite, path: string) {
  const isStagedDirectory = (at: string) => files.target(at) === undefined && files.hasDirectory(at)
  if (!isStagedDirectory(path)) return files.remove(path)
  for (const directory of [`${path}/gone`, path].filter(isStagedDirectory)) {
    for (const name of files.list(directory).filter((name) => /^(fs|\.fs\..{6})$/.test(name))) {
      files.remove(`${directory}/${name}`)
    }
    files.removeEmpty(directory)
  }
  if (files.hasDirectory(path)) warn(`${path} holds files that are not modekeep's: left in place`)
}
