import { type Arguments, JSON_TEXT } from './form.ts'

export interface Common {
  isDry: boolean
  /** Kubelet's volume plugin directory, where the running one is not to be asked. */
  pluginDir: string | undefined
  /** The system that is worked on, where it is not the one that runs. */
  root: string | undefined
  proc: string | undefined
}

export const COMMON = {
  'plugin-dir': "kubelet's volume plugin directory (default: what the running kubelet uses)",
  'dry-run': 'print every step and change nothing; needs no root',
  root: 'work on the system below DIR (an image), where no kubelet is looked for',
  proc: 'look for kubelets and mounts in this proc directory (default: /proc)',
  json: JSON_TEXT,
}

/** What install and uninstall have in common. */
export function commonOf(args: Arguments): Common {
  const { given } = args
  return {
    isDry: given.has('dry-run'),
    pluginDir: given.get('plugin-dir'),
    root: pathOf('root', args),
    proc: pathOf('proc', args),
  }
}

export function pathOf(name: string, { given, workingDirectory }: Arguments): string | undefined {
  const value = given.get(name)
  // Not made normal: ".." behind a link is not where the text says.
  return value === undefined || value.startsWith('/') ? value : `${workingDirectory()}/${value}`
}
