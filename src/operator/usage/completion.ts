import type { Shell } from '../verbs/about.ts'
import { bash } from './completion-bash.ts'
import { fish } from './completion-fish.ts'
import { zsh } from './completion-zsh.ts'

const SCRIPTS: Readonly<Record<Shell, () => string>> = { bash, zsh, fish }

/** A script that completes the words of `modekeep`, made from the tables of verbs and options. */
export function completionScript(shell: Shell): string {
  return SCRIPTS[shell]()
}
