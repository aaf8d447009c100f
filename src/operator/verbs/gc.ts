import { type GcCommand, type GcDocument, gc as run } from '../actions/gc.ts'
import { trimEllipsis } from '../actions/target.ts'
import { alignColumns, type Line } from '../text/output.ts'
import type { SessionVerb } from './form.ts'

const MAX_NAMES = 3

export const gc: SessionVerb<GcCommand, GcDocument> = {
  summary: 'remove records that no mount, pod or restore needs',
  text: [
    'Removes what nothing needs any more: records of mounts whose pod or boot is gone, empty journals, journals of ' +
      'directories that an atomic update deleted, reservations and stages of interrupted calls, and what was mounted for ' +
      'containers that are gone.',
    'A pod that was deleted without an unmount gets its pending restore first. Volumes with a pending restore are ' +
      'kept, and so is everything that restore could still put back. It says what was kept and why.',
  ],
  options: {
    'dry-run': 'print what would be removed; change nothing',
    forget:
      'also remove the record of this volume (its name, or an unambiguous beginning of it), even if a restore is pending: nothing of it can be put back then. ' +
      'Refused while its directory can be found or a pod uses it',
  },
  examples: ['modekeep gc --dry-run', 'modekeep gc'],
  failure: 'something could not be removed',
  read({ given }) {
    const word = given.get('forget')
    return { verb: 'gc', isDry: given.has('dry-run'), forget: word && trimEllipsis(word) }
  },
  run,
  /** Formats removed items line by line, and kept items by reason. */
  lines({ isDry, items }) {
    const kept = items.filter(({ action }) => action === 'kept')
    const others = items.filter(({ action }) => action !== 'kept')
    const tail = isDry ? '. Nothing was changed.' : ''
    const gone = others.filter(({ action }) => action === 'removed').length
    const done = (action: string) => (isDry && action === 'removed' ? 'would be removed' : action)
    const rows = others.map(({ action, kind, name, reason }) => [done(action), kind, name, reason])
    return [
      { text: `${gone} ${done('removed')}, ${kept.length} kept${tail}`, style: 'strong' },
      ...alignColumns(rows).map(
        (text, row): Line => (others[row]?.action === 'failed' ? { text, style: 'fault' } : text),
      ),
      ...Map.groupBy(kept, ({ kind, reason }) => `${kind} ${reason}`)
        .values()
        .flatMap(formatKeptItems),
    ]
  },
  trouble: 'not everything could be removed: the reasons are above',
  hasTrouble: ({ items }) => items.some(({ action }) => action === 'failed'),
}

function formatKeptItems(items: GcDocument['items']): Line[] {
  const [first, second] = items
  if (first === undefined) return []
  const { kind, name, reason } = first
  if (second === undefined) return [`kept  ${kind} ${name}: ${reason}`]
  const names = items.slice(0, MAX_NAMES).map((item) => `      ${item.name}`)
  const more = items.length > MAX_NAMES ? [`      and ${items.length - MAX_NAMES} more`] : []
  return [`kept  ${items.length} ${kind}s: ${reason}`, ...names, ...more]
}
