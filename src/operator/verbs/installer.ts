import type { Given } from './arguments.ts'

interface Common {
  isDry: boolean
  /** Kubelet's volume plugin directory, where the running one is not to be asked. */
  pluginDir: string | undefined
  /** The system that is worked on, where it is not the one that runs. */
  root: string | undefined
  proc: string | undefined
}

export interface InstallCommand extends Common {
  verb: 'install'
  binary: string | undefined
  /** Of the executable, 64 small hexadecimal digits. */
  sha256: string | undefined
  config: string | undefined
  /** The root directory that the driver is tried in. */
  tryIn: string | undefined
}

export interface UninstallCommand extends Common {
  verb: 'uninstall'
  isPurging: boolean
  isForced: boolean
}

/** @param workingDirectory what a relative path starts from; called only for one */
export function installerCommand(
  verb: 'install' | 'uninstall',
  given: Given,
  workingDirectory: () => string,
): InstallCommand | UninstallCommand {
  const path = (name: string) => {
    const value = given.get(name)
    // Not made normal: ".." behind a link is not where the text says.
    return value === undefined || value.startsWith('/') ? value : `${workingDirectory()}/${value}`
  }
  const common = {
    isDry: given.has('dry-run'),
    pluginDir: given.get('plugin-dir'),
    root: path('root'),
    proc: path('proc'),
  }
  if (verb === 'uninstall') return { verb, ...common, isPurging: given.has('purge'), isForced: given.has('force') }
  const sha256 = given.get('sha256')?.toLowerCase()
  return { verb, ...common, binary: path('binary'), sha256, config: path('config'), tryIn: path('try-in') }
}
