import { tolerateSystemErrors } from '../../host/system-error.ts'
import type { InstallCommand, UninstallCommand } from '../commands/install.ts'
import { makePluginDirectory, makeSiteDirectories, refuseOutsideRoot, refuseWritablePaths } from './directories.ts'
import { installConfiguration, installDriver, linkOperatorCommand } from './driver.ts'
import { findConfiguration, findExecutable } from './executable.ts'
import { createInstallRefusal } from './install-refusal.ts'
import { choosePluginDirectory } from './plugin-directory.ts'
import { type InstallerRun, type InstallSite, removeInstallLeftovers, resolveSitePaths, runLocked } from './site.ts'
import { uninstallFrom } from './uninstall.ts'

/**
 * Installs or upgrades the driver. If it is killed at any step, the old or the new driver is complete, and the next run
 * removes staged files.
 * @throws {Refusal} with the fault first, then the remedies; any other error is the system's
 */
export async function install(job: InstallerRun<InstallCommand>): Promise<void> {
  const configuration = findConfiguration(job)
  using executable = findExecutable(job)
  const site = resolveSite(job)
  refuseWritablePaths(site)
  const isNew = makePluginDirectory(site)
  const removeStaged = () => removeInstallLeftovers({ ...site, report() {} })
  await runLocked(site, async () => {
    try {
      makeSiteDirectories(site)
      await installDriver(site, executable)
      await installConfiguration(site, configuration)
      linkOperatorCommand(site)
    } catch (error) {
      tolerateSystemErrors(removeStaged)
      throw error
    }
    removeStaged()
  })
  if (isNew && site.root === '') {
    job.report('note', 'the plugin directory is new: restart the kubelet, which looks for it only at its start')
  }
}

/** Removes the driver and its link. Throws like `install`. */
export async function uninstall(job: InstallerRun<UninstallCommand>): Promise<void> {
  const site = resolveSite(job)
  await runLocked(site, () => uninstallFrom(site))
}

function resolveSite<Command extends InstallCommand | UninstallCommand>(
  job: InstallerRun<Command>,
): InstallSite<Command> {
  const { files } = job.admin
  const { root: named } = job.command
  const real = named === undefined ? '' : tolerateSystemErrors(() => files.realPath(named))
  if (real === undefined) throw createInstallRefusal(`--root: there is no directory ${named}`)
  // Canonical like paths of mountinfo, and '' for the running system, because every path is `root/...`.
  const root = real === '/' ? '' : real
  const { directory, reason } = choosePluginDirectory(job, root)
  const site = { ...job, ...resolveSitePaths(files, root, directory) }
  job.report('plugin dir', `${site.plugins} (${reason})`)
  refuseOutsideRoot(site)
  return site
}
