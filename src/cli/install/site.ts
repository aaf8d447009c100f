import { DEFAULT_CONFIG } from '../../config/defaults.ts'
import { createFault } from '../../errors/fault.ts'
import { Refusal } from '../../errors/refusal.ts'
import type { NodeAdministration, NodeFiles } from '../../kernel/administration.ts'
import type { Lock } from '../../kernel/host.ts'
import type { InstallCommand, UninstallCommand } from '../commands/install.ts'

/** One run of the installer. It throws a Refusal with the fault first, then the remedies. */
export interface InstallerRun<Command = InstallCommand | UninstallCommand> {
  admin: NodeAdministration
  command: Command
  /** This program's own file; undefined if it runs from its sources. */
  executable: string | undefined
  /** Reports a step that was taken, or with `would` one that would be. */
  report(step: string, text: string): void
  warn(text: string): void
  /** Aborted by a signal, with the reason to throw. */
  stop: AbortSignal
}

/** A run of the installer, with its paths on the node. */
export type InstallSite<Command = InstallCommand | UninstallCommand> = InstallerRun<Command> &
  ReturnType<typeof resolveInstallPaths>

export const DEFAULT_VOLUMES_DIR = '/var/lib/modekeep/volumes'
const MAX_CONFIG_BYTES = 1 << 20

/**
 * Resolves all paths below `root`, except those whose names end in Dir or Target, which are the node's own paths.
 * @param root '' for the running system
 */
export function resolveInstallPaths(files: NodeFiles, root: string, pluginDir: string) {
  const configDirectory = `${root}/etc/modekeep`
  const config = `${configDirectory}/config.json`
  const configText = files.head(config, MAX_CONFIG_BYTES)?.toString() ?? ''
  // Matched in the text, because a faulty or unparsable configuration may name its directories too.
  const named = (key: 'stateDir' | 'logFile') =>
    new RegExp(`"${key}"\\s*:\\s*"(/[^"\\\\]*)"`).exec(configText)?.[1] ?? DEFAULT_CONFIG[key]
  const stateDir = named('stateDir')
  const [plugins, state, commands] = [root + pluginDir, root + stateDir, `${root}/usr/local/sbin`]
  const example = `${configDirectory}/config.example.json`
  return {
    files,
    root,
    plugins,
    driverDirectory: `${plugins}/modekeep~fs`,
    driver: `${plugins}/modekeep~fs/fs`,
    /** The operator's command. */
    link: `${commands}/modekeep`,
    linkTarget: `${pluginDir}/modekeep~fs/fs`,
    state,
    stateDir,
    logFile: root + named('logFile'),
    configDirectory,
    config,
    configText,
    example,
    /** Temporary files. Their names are fixed, so that the next run removes those of a killed one. */
    aside: {
      probe: `${state}/.install-probe.json`,
      unfinishedProbe: `${state}/.install-probe.json.new`,
      config: `${configDirectory}/.config.json.new`,
      example: `${example}.new`,
      link: `${commands}/.modekeep.new`,
    },
  }
}

/** Takes a step; a dry run only reports its text. @param done the report after the step */
export function takeInstallStep(
  { command, report }: InstallerRun,
  text: string,
  work: () => void,
  ...done: [] | [step: string, text: string]
) {
  if (command.isDry) return report('would', text)
  work()
  if (done.length === 2) report(...done)
}

/** Renames a complete, synced file or directory to its final name. A file may replace another. */
export function renameIntoPlace(files: NodeFiles, from: string, to: string): void {
  if (files.hasDirectory(to)) throw createInstallRefusal(`${to} is a directory: remove it, then run this again`)
  files.rename(from, to)
}

/** Returns a random name for a staged file. Kubelet ignores names with a leading dot. */
export function createStagedFileName(path: string): string {
  return `${path}.${Math.random().toString(36).slice(2, 8).padEnd(6, '0')}`
}

const INSTALL_LOCK_TIMEOUT_SECONDS = 120
const INSTALL_LOCK_RETRY_MS = 100

/** Runs one installer at a time, after it has removed leftovers of a killed one. A dry run takes no lock. */
export async function runWithInstallLock(site: InstallSite, work: () => void | Promise<void>): Promise<void> {
  const isLocked = !site.command.isDry && site.files.hasDirectory(site.plugins)
  using _ = isLocked ? await takeInstallLock(site) : undefined
  removeInstallLeftovers(site)
  await work()
}

async function takeInstallLock({ admin, plugins, report, stop }: InstallSite): Promise<Lock> {
  const until = performance.now() + INSTALL_LOCK_TIMEOUT_SECONDS * 1000
  for (let isFirst = true; ; isFirst = false) {
    try {
      const lock = admin.tryLockDirectory(plugins)
      if (lock !== undefined) return lock
    } catch (error) {
      throw createInstallRefusal(`cannot lock ${plugins}: ${(error as Error).message}`, { cause: error })
    }
    if (isFirst) report('waiting', 'another install is running')
    if (performance.now() > until)
      throw createInstallRefusal(`another install has been running for ${INSTALL_LOCK_TIMEOUT_SECONDS} seconds`)
    await new Promise((done) => setTimeout(done, INSTALL_LOCK_RETRY_MS))
    stop.throwIfAborted()
  }
}

/** Removes temporary and staged files of an installer, by their names. */
export function removeInstallLeftovers(site: InstallSite): void {
  const { files, plugins, driverDirectory, aside } = site
  for (const path of Object.values(aside).filter((path) => files.stat(path, 'of a link itself'))) {
    takeInstallStep(site, `remove ${path}`, () => files.remove(path))
  }
  const stagedIn = (directory: string, form: RegExp) => {
    const names = files.list(directory).filter((name) => form.test(name))
    return names.map((name) => `${directory}/${name}`).filter((path) => files.target(path) === undefined)
  }
  for (const path of [...stagedIn(plugins, /^\.modekeep~fs\..{6}$/), ...stagedIn(driverDirectory, /^\.fs\..{6}$/)]) {
    takeInstallStep(
      site,
      `remove ${path}, left by an interrupted install`,
      () => removeStagedPath(site, path),
      'swept',
      path,
    )
  }
}

/** Removes a staged file, or a staged directory with its driver. Removes modekeep's own names only, and follows no link. */
export function removeStagedPath({ files, warn }: InstallSite, path: string) {
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

/** Creates a refusal of the installer, whose message has several lines. */
export function createInstallRefusal(lines: string | readonly string[], options?: ErrorOptions): Refusal {
  const list = typeof lines === 'string' ? [lines] : lines
  return new Refusal(
    list.map((line) => createFault('install', line)),
    options,
  )
}
