import { unlessRefused } from '../../host/file-error.ts'
import { Refusal } from '../../refusal/refusal.ts'
import type { InstallCommand } from '../verbs/install.ts'
import type { UninstallCommand } from '../verbs/uninstall.ts'
import { installConfiguration, linkCommand } from './configuration.ts'
import { installDriver } from './driver.ts'
import { findExecutable } from './executable.ts'
import type { Job } from './job.ts'
import { underLock } from './leftovers.ts'
import { makePlaces, makePluginDirectory, type Places, placesOf, stayBelowRoot, warnAboutWriters } from './places.ts'
import { choosePluginDirectory } from './plugin-directory.ts'
import { uninstallFrom } from './uninstall.ts'

/**
 * Installs or upgrades the driver. Killed at any step it leaves the driver that was there, or the new one, whole; the next run
 * removes what was being written.
 * @throws {Refusal} whose first sentence is the fault and the rest the way out; any other error is the system's
 */
export async function install(job: Job<InstallCommand>): Promise<void> {
  const executable = findExecutable(job)
  const places = choosePlaces(job)
  const isNew = makePluginDirectory(job, places)
  warnAboutWriters(job, places, places.plugins, 'the driver')
  await underLock(job, places, async () => {
    makePlaces(job, places)
    warnAboutWriters(job, places, places.configDirectory, 'the configuration')
    await installDriver(job, places, executable)
    await installConfiguration(job, places)
    linkCommand(job, places)
  })
  if (isNew && places.root === '') {
    job.tell('note', 'the plugin directory is new: restart the kubelet, which looks for it only at its start')
  }
}

/** Removes the driver and its link. Throws as `install`. */
export async function uninstall(job: Job<UninstallCommand>): Promise<void> {
  await uninstallFrom(job, choosePlaces(job))
}

function choosePlaces(job: Job): Places {
  const { files } = job.admin
  const root = rootOf(job)
  const { directory, reason } = choosePluginDirectory(job, root)
  const places = placesOf(files, root, directory)
  job.tell('plugin dir', `${places.plugins} (${reason})`)
  stayBelowRoot(files, places)
  return places
}

/** Canonical, as mountinfo has it, and '' for the system that runs: every path is `root/...`. */
function rootOf({ admin, command: { root } }: Job): string {
  if (root === undefined) return ''
  const real = unlessRefused(() => admin.files.realPath(root))
  if (real === undefined) throw new Refusal(`--root: there is no directory ${root}`)
  return real === '/' ? '' : real
}
