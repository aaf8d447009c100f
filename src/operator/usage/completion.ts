import type { Shell } from '../verbs/about.ts'
import { formatBashScript } from './completion-bash.ts'
import { formatFishScript } from './completion-fish.ts'
import { formatZshScript } from './completion-zsh.ts'

const SCRIPTS: Readonly<Record<Shell, () => string>> = {
  bash: formatBashScript,
  zsh: formatZshScript,
  fish: formatFishScript,
}

/** Returns a completion script for `modekeep`, generated from the tables of verbs and options. */
export function formatCompletionScript(shell: Shell): string {
  return SCRIPTS[shell]()
}
