import { Refusal } from '../../errors/refusal.ts'
import type { Administration } from '../../host/administration.ts'
import type { NodeFiles } from '../../host/node-files.ts'
import { DEFAULT_CONFIG } from '../../request/defaults.ts'
import type { InstallCommand, UninstallCommand } from '../verbs/install.ts'

/** One run of the installer. It throws a Refusal with the fault first, then the remedies. */
export interface InstallerRun<Command = InstallCommand | UninstallCommand> {
  admin: Administration
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
  ReturnType<typeof resolveSitePaths>

export const VOLUMES_DIR = '/var/lib/modekeep/volumes'
const MAX_CONFIG_BYTES = 1 << 20

/**
 * Resolves all paths below `root`, except those whose names end in Dir or Target, which are the node's own paths.
 * @param root '' for the running system
 */
export function resolveSitePaths(files: NodeFiles, root: string, pluginDir: string) {
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
export function takeStep(
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
  if (files.hasDirectory(to)) throw new Refusal(`${to} is a directory: remove it, then run this again`)
  files.rename(from, to)
}

/** Returns a random name for a staged file. Kubelet ignores names with a leading dot. */
export function createStagedName(path: string): string {
  return `${path}.${Math.random().toString(36).slice(2, 8).padEnd(6, '0')}`
}
