import { completionScript } from '../src/operator/text/completion.ts'
import { helpText } from '../src/operator/text/help.ts'
import { manualPage } from '../src/operator/text/manual.ts'
import { jsonLine } from '../src/operator/text/printable.ts'
import type { About } from '../src/operator/verbs/command.ts'
import { VERSION } from './version.ts'

/** What modekeep says of itself, the same on every node. */
export function aboutText(command: About, json: boolean): string {
  switch (command.verb) {
    case 'help': {
      const text = command.isManual ? manualPage(VERSION) : helpText(command.topic)
      return json ? jsonLine({ verb: 'help', topic: command.topic ?? null, text }) : text
    }
    case 'version':
      return json
        ? jsonLine({ verb: 'version', version: VERSION, node: process.versions.node, arch: process.arch })
        : `modekeep ${VERSION}\n`
    case 'completion':
      return completionScript(command.shell)
  }
}
