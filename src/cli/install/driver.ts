import { dirname } from 'node:path'
import { DIRECTORY_TYPE, REGULAR_FILE_TYPE } from '../../kernel/host.ts'
import { hasCallSucceeded } from '../../kernel/system-error.ts'
import type { InstallCommand } from '../commands/install.ts'
import {
  assertExecutableFormat,
  assertExecutableSum,
  assertInitSucceeds,
  callDriverInit,
  type InstallExecutable,
} from './executable.ts'
import {
  createInstallRefusal,
  createStagedFileName,
  type InstallSite,
  renameIntoPlace,
  takeInstallStep,
} from './site.ts'

/** @throws {Refusal} if the path of the driver's directory is a link or no directory */
export function checkDriverDirectory({ files, driverDirectory }: InstallSite): void {
  if (files.target(driverDirectory) !== undefined) {
    throw createInstallRefusal(`${driverDirectory} is a symbolic link, which the kubelet skips: remove it first`)
  }
  if (files.stat(driverDirectory) && !files.hasDirectory(driverDirectory)) {
    throw createInstallRefusal(`${driverDirectory} is not a directory: remove it first`)
  }
}

/**
 * Installs the driver by one rename. Kubelet watches its plugin directory and calls `init` upon events on names without a
 * leading dot. So the driver is completed and synced under a dot name, and nothing else is written there.
 */
export async function installDriver(site: InstallSite<InstallCommand>, executable: InstallExecutable): Promise<void> {
  checkDriverDirectory(site)
  const { files, plugins, driverDirectory, driver, report, stop } = site
  const isOwnedByRoot = (path: string, mode: number) => {
    const stat = files.stat(path, 'of a link itself')
    return stat?.mode === mode && stat.uid === 0 && stat.gid === 0
  }
  const isUpgrade = files.hasDirectory(driverDirectory)
  const isDirectoryOurs = isOwnedByRoot(driverDirectory, DIRECTORY_TYPE | 0o755)
  // The checksum is compared last, because reading the file is slowest.
  if (isDirectoryOurs && isOwnedByRoot(driver, REGULAR_FILE_TYPE | 0o755) && files.sum(driver) === executable.sum) {
    return report('unchanged', `${driver} has these bytes already`)
  }
  const form = isUpgrade ? `${driverDirectory}/.fs` : `${plugins}/.modekeep~fs`
  const stage = site.command.isDry ? `${form}.XXXXXX` : createStagedFileName(form)
  const shown = isUpgrade ? driver : driverDirectory
  const copy = isUpgrade ? stage : `${stage}/fs`
  if (site.command.isDry) {
    report('would', `copy ${executable.path} to ${copy} (0755), sync it`)
    report('would', 'run its init and go on only if it answers Success')
    return report('would', `rename ${stage} to ${shown}`)
  }
  if (!isUpgrade) files.makeDirectory(stage, 0o700)
  // Secured first: a user who may write to the directory could replace the staged file between its check and its use.
  if (isUpgrade && !isDirectoryOurs) files.secure(driverDirectory, 0o755)
  // Lets a pending signal be handled.
  await new Promise((done) => setImmediate(done))
  stop.throwIfAborted()
  assertExecutableSum(executable, executable.file.copyTo(copy))
  files.secure(copy, 0o755)
  files.sync(copy)
  await assertInitSucceeds(site, executable, copy)
  const wasThere = files.stat(driver) !== undefined
  if (isUpgrade) renameIntoPlace(files, stage, shown)
  else {
    files.secure(stage, 0o755)
    files.sync(stage)
    if (files.stat(driverDirectory)) throw createInstallRefusal(`${driverDirectory} appeared meanwhile, run this again`)
    files.rename(stage, shown)
  }
  files.sync(dirname(shown))
  report(wasThere ? 'upgraded' : 'installed', driver)
}

/** Links the driver as the operator's command, unless another file has that name. */
export function linkOperatorCommand(site: InstallSite) {
  const { files, warn, link, linkTarget, driver, aside } = site
  const target = files.target(link)
  if (target === linkTarget) return
  // A link to a modekeep driver in any plugin directory is modekeep's own.
  if (files.stat(link, 'of a link itself') && !target?.endsWith('/modekeep~fs/fs')) {
    return warn(`${link} is not modekeep's: left alone, the operator's command is ${driver}`)
  }
  takeInstallStep(site, `link ${link} -> ${linkTarget}`, () => {
    const isMade = hasCallSucceeded(() => {
      files.makeDirectory(dirname(link), 0o755)
      files.link(linkTarget, aside.link)
    })
    if (!isMade) return warn(`cannot write ${dirname(link)}: no link there, the operator's command is ${driver}`)
    renameIntoPlace(files, aside.link, link)
    site.report('linked', `${link} -> ${linkTarget}`)
  })
}

/** Installs the file of --config as the node's configuration, unless the installed driver finds a fault in it. */
export async function installConfiguration(
  site: InstallSite<InstallCommand>,
  bytes: Buffer | undefined,
): Promise<void> {
  const { files, report, config: installed, driver } = site
  const { config, isDry } = site.command
  if (bytes === undefined) return
  if (isDry) return report('would', `rename a copy of ${config} to ${installed}, unless the driver finds a fault in it`)
  assertExecutableFormat(files, driver, driver)
  const candidate = site.aside.config
  files.create(candidate, bytes)
  files.secure(candidate, 0o644)
  files.sync(candidate)
  const { fault, text, shown } = await callDriverInit(site, driver, candidate)
  const inForce = 'the configuration that was there, if any, is in force'
  const faults = parseInitReplyFaults(text)
  if (faults !== '') throw createInstallRefusal([`${config} is refused; ${inForce}`, faults])
  // A failed init is no proof of a valid configuration.
  if (fault !== undefined)
    throw createInstallRefusal([`${config} was not tried; ${inForce}`, `init gave ${fault}`, shown])
  if (!files.hasDirectory(installed) && files.stat(installed) && files.isSame(candidate, installed)) {
    return report('unchanged', `${installed} has these bytes already`)
  }
  renameIntoPlace(files, candidate, installed)
  files.sync(site.configDirectory)
  report('configured', installed)
}

/** Parses the configuration's faults from the reply of `init`, which succeeds even if there are any. */
function parseInitReplyFaults(answer: string): string {
  try {
    const { message } = JSON.parse(answer)
    return typeof message === 'string' ? message : ''
  } catch {
    return ''
  }
}
