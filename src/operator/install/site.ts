import type { Administration } from '../../host/administration.ts'
import type { NodeFiles } from '../../host/node-files.ts'
import { Refusal } from '../../refusal/refusal.ts'
import { DEFAULT_CONFIG } from '../../request/defaults.ts'
import type { InstallCommand, UninstallCommand } from '../verbs/install.ts'

/** One run of the installer. What it refuses is a Refusal: its first sentence is the fault, the rest what to do. */
export interface InstallerRun<Command = InstallCommand | UninstallCommand> {
  admin: Administration
  command: Command
  /** This program's own file; undefined where it runs from its sources. */
  executable: string | undefined
  /** A step that was taken, or with `would` one that would be. */
  report(step: string, text: string): void
  warn(text: string): void
  /** Aborted by a signal, with what is then thrown. */
  stop: AbortSignal
}

/** A job, and where its things lie on the node. */
export type InstallSite<Command = InstallCommand | UninstallCommand> = InstallerRun<Command> &
  ReturnType<typeof resolveSitePaths>

export const VOLUMES_DIR = '/var/lib/modekeep/volumes'
const MAX_CONFIG_BYTES = 1 << 20

/**
 * All below `root`, but for those whose names end in Dir or Target, which are paths as the node sees them.
 * @param root '' for the system that runs
 */
export function resolveSitePaths(files: NodeFiles, root: string, pluginDir: string) {
  const configDirectory = `${root}/etc/modekeep`
  const config = `${configDirectory}/config.json`
  const configText = files.head(config, MAX_CONFIG_BYTES)?.toString() ?? ''
  // From the text, as a configuration with a fault, or none at all to a parser, has its directories too.
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
    /** Written and then renamed or removed. One name each, so that the next run removes what a killed one has left. */
    aside: {
      probe: `${state}/.install-probe.json`,
      unfinishedProbe: `${state}/.install-probe.json.new`,
      config: `${configDirectory}/.config.json.new`,
      example: `${example}.new`,
      link: `${commands}/.modekeep.new`,
    },
  }
}

/** A step: in a dry run only its text. @param told what is told when it was taken */
export function takeStep(
  { command, report }: InstallerRun,
  text: string,
  work: () => void,
  ...told: [] | [step: string, text: string]
) {
  if (command.isDry) return report('would', text)
  work()
  if (told.length === 2) report(...told)
}

/** Shows something complete and synced under its name, or a file in the place of another. */
export function publish(files: NodeFiles, from: string, to: string): void {
  if (files.hasDirectory(to)) throw new Refusal(`${to} is a directory: remove it, then run this again`)
  files.rename(from, to)
}

/** A name for what is staged, which kubelet passes over as it begins with a dot. */
export function createStagedName(path: string): string {
  return `${path}.${Math.random().toString(36).slice(2, 8).padEnd(6, '0')}`
}
