import { jsonDocument } from '../text/printable.ts'
import type { CommandOf } from '../verbs/index.ts'
import { completionScript } from './completion.ts'
import { helpText } from './help.ts'
import { manualPage } from './manual.ts'

export interface Versions {
  version: string
  node: string
  arch: string
}

/** What modekeep says of itself, the same on every node. */
export function aboutText(
  command: CommandOf<'help' | 'version' | 'completion'>,
  isJson: boolean,
  versions: Versions,
): string {
  switch (command.verb) {
    case 'help': {
      const text = command.isManual ? manualPage(versions.version) : helpText(command.topic)
      return isJson ? jsonDocument({ verb: 'help', topic: command.topic ?? null, text }) : text
    }
    case 'version':
      return isJson ? jsonDocument({ verb: 'version', ...versions }) : `modekeep ${versions.version}\n`
    case 'completion':
      return completionScript(command.shell)
  }
}
