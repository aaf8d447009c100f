import { unlessRefused } from '../../host/file-error.ts'
import { Refusal } from '../../refusal/refusal.ts'
import type { InstallCommand, UninstallCommand } from '../verbs/install.ts'
import { installConfiguration, installDriver, linkCommand } from './driver.ts'
import { findConfiguration, findExecutable } from './executable.ts'
import { sweep, underLock } from './leftovers.ts'
import { makePlaces, makePluginDirectory, refuseWriters, stayBelowRoot } from './places.ts'
import { choosePluginDirectory } from './plugin-directory.ts'
import { type Job, placesOf, type Site } from './site.ts'
import { uninstallFrom } from './uninstall.ts'

/**
 * Installs or upgrades the driver. Killed at any step it leaves the driver that was there, or the new one, whole; the
 * next run removes what was being written.
 * @throws {Refusal} whose first sentence is the fault and the rest the way out; any other error is the system's
 */
export async function install(job: Job<InstallCommand>): Promise<void> {
  const configuration = findConfiguration(job)
  using executable = findExecutable(job)
  const site = siteOf(job)
  refuseWriters(site)
  const isNew = makePluginDirectory(site)
  const removeStaged = () => sweep({ ...site, tell() {} })
  await underLock(site, async () => {
    try {
      makePlaces(site)
      await installDriver(site, executable)
      await installConfiguration(site, configuration)
      linkCommand(site)
    } catch (error) {
      unlessRefused(removeStaged)
      throw error
    }
    removeStaged()
  })
  if (isNew && site.root === '') {
    job.tell('note', 'the plugin directory is new: restart the kubelet, which looks for it only at its start')
  }
}

/** Removes the driver and its link. Throws as `install`. */
export async function uninstall(job: Job<UninstallCommand>): Promise<void> {
  const site = siteOf(job)
  await underLock(site, () => uninstallFrom(site))
}

function siteOf<Command extends InstallCommand | UninstallCommand>(job: Job<Command>): Site<Command> {
  const { files } = job.admin
  const { root: named } = job.command
  const real = named === undefined ? '' : unlessRefused(() => files.realPath(named))
  if (real === undefined) throw new Refusal(`--root: there is no directory ${named}`)
  // Canonical, as mountinfo has it, and '' for the system that runs: every path is `root/...`.
  const root = real === '/' ? '' : real
  const { directory, reason } = choosePluginDirectory(job, root)
  const site = { ...job, ...placesOf(files, root, directory) }
  job.tell('plugin dir', `${site.plugins} (${reason})`)
  stayBelowRoot(site)
  return site
}
