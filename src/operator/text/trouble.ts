import type { Document } from '../actions/document.ts'
import type { Target, Work } from '../verbs/command.ts'
import { printable } from './printable.ts'

/** What makes a verb that was carried out a failure all the same. */
export function troubleIn(document: Document): string | undefined {
  switch (document.verb) {
    case 'restore':
      return document.outcome === 'unfinished'
        ? 'not everything could be put back, and what was not stays recorded: remove the cause and run restore again'
        : undefined
    case 'heal':
      return document.mounts.some(({ action }) => action === 'failed')
        ? 'not every mount could be repaired: the reasons are above'
        : undefined
    case 'gc':
      return document.items.some(({ action }) => action === 'failed')
        ? 'not everything could be removed: the reasons are above'
        : undefined
    case 'doctor':
      return document.faults > 0 ? 'this node has faults: what to do is above' : undefined
    default:
      return undefined
  }
}

/** What to know of a verb that is interrupted; undefined where nothing is begun. */
export function interruptedText(command: Work): string | undefined {
  if (command.verb === 'apply') {
    const place = quoted(command.directory)
    return (
      'interrupted. What was changed is recorded: the same command continues, ' +
      `"modekeep restore ${place}" puts it back`
    )
  }
  if (command.verb !== 'restore' || command.isDry) return undefined
  return `interrupted. What is not put back yet is still recorded: "modekeep restore ${named(command.target)}" continues`
}

function named(target: Target): string {
  return 'volume' in target ? target.volume : quoted(target.directory)
}

/** As a shell takes it. */
function quoted(path: string): string {
  const text = printable(path)
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}
