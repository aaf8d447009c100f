import { reconcileContainers } from '../../container/container-task.ts'
import { formatReasonWithCode } from '../../errors/fault.ts'
import { Refusal } from '../../errors/refusal.ts'
import { restoreLeftoverRootSetGid } from '../../fsgroup/root-bit.ts'
import { collectGarbage, refuseToForgetVolume } from '../../repair/garbage.ts'
import type { GarbageItem } from '../../repair/volume-garbage.ts'
import { listContainerRecords } from '../../state/container-record.ts'
import { listVolumesWithRecords } from '../../state/record-directories.ts'
import type { Session } from '../../state/session.ts'
import { alignColumns, type OutputLine } from '../output/output.ts'
import { resolveVolumeName } from './operands.ts'
import { trimEllipsis } from './options.ts'
import type { SessionVerb } from './verb.ts'

const MAX_SHOWN_KEPT_ITEMS = 3

export const gcVerb: SessionVerb<GcCommand, GcDocument> = {
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
  run: runGarbageCollection,
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
        (text, row): OutputLine => (others[row]?.action === 'failed' ? { text, style: 'fault' } : text),
      ),
      ...Map.groupBy(kept, ({ kind, reason }) => `${kind} ${reason}`)
        .values()
        .flatMap(formatKeptGarbage),
    ]
  },
  trouble: 'not everything could be removed: the reasons are above',
  hasTrouble: ({ items }) => items.some(({ action }) => action === 'failed'),
}

function formatKeptGarbage(items: GcDocument['items']): OutputLine[] {
  const [first, second] = items
  if (first === undefined) return []
  const { kind, name } = first
  const reason = formatReasonWithCode(first)
  if (second === undefined) return [`kept  ${kind} ${name}: ${reason}`]
  const names = items.slice(0, MAX_SHOWN_KEPT_ITEMS).map((item) => `      ${item.name}`)
  const more = items.length > MAX_SHOWN_KEPT_ITEMS ? [`      and ${items.length - MAX_SHOWN_KEPT_ITEMS} more`] : []
  return [`kept  ${items.length} ${kind}s: ${reason}`, ...names, ...more]
}

/** @property forget a volume whose record is removed, or the beginning of its name */
export interface GcCommand {
  verb: 'gc'
  isDry: boolean
  forget: string | undefined
}

export interface GcDocument {
  verb: 'gc'
  isDry: boolean
  items: GarbageItem[]
}

/** Removes unneeded records from the state directory, or reports what it would remove. */
export async function runGarbageCollection(session: Session, { isDry, forget: word }: GcCommand): Promise<GcDocument> {
  const forget = word === undefined ? undefined : resolveVolumeName(session, word, listVolumesWithRecords(session))
  if (word !== undefined && forget === undefined) {
    throw Refusal.of(
      'volume-unknown',
      `nothing is recorded of volume ${word}`,
      `"modekeep status" names those that are`,
    )
  }
  if (forget !== undefined) await refuseToForgetVolume(session, forget)
  const items = [...(await collectGarbage(session, { isDry, forget })), ...collectContainerGarbage(session, isDry)]
  if (!isDry) await restoreLeftoverRootSetGid(session)
  const removed = items.filter(({ action }) => action === 'removed').map(({ kind, name }) => `${kind} ${name}`)
  session.note({ removed })
  return { verb: 'gc', isDry, items }
}

/** Removes clones and records of containers that are gone. The runtime's plugin does the same whenever it connects. */
function collectContainerGarbage(session: Session, isDry: boolean): GarbageItem[] {
  const reason = 'its pod is gone, or it has long had time to start'
  const removed = reconcileContainers(session, undefined, isDry)
  const kept = listContainerRecords(session).flatMap(({ container: name, problem }): GarbageItem[] =>
    problem === undefined || removed.includes(name)
      ? []
      : [{ kind: 'container', name, action: 'kept', reason: problem.message }],
  )
  return [...removed.map((name): GarbageItem => ({ kind: 'container', name, action: 'removed', reason })), ...kept]
}
