import { type GcCommand, type GcDocument, gc as run } from '../actions/gc.ts'
import { gcLines } from '../text/gc.ts'
import { JSON_TEXT, type Work } from './form.ts'

export const gc: Work<GcCommand, GcDocument> = {
  operands: '',
  summary: 'remove records that no mount, pod or restore needs',
  text: [
    'Removes what nothing needs any more: records of mounts whose pod or boot is gone, empty journals, journals of ' +
      'directories that an atomic update deleted, reservations and stages of interrupted calls.',
    'A pod that was deleted without an unmount gets its pending restore first. Volumes with a pending restore are ' +
      'kept, and so is everything that restore could still put back. It says what was kept and why.',
  ],
  options: {
    'dry-run': 'print what would be removed; change nothing',
    forget:
      'also remove the record of this volume, even if a restore is pending: nothing of it can be put back then. ' +
      'Refused while its directory can be found or a pod uses it',
    json: JSON_TEXT,
  },
  examples: ['modekeep gc --dry-run', 'modekeep gc'],
  failure: 'something could not be removed',
  read: ({ given }) => ({ verb: 'gc', isDry: given.has('dry-run'), forget: given.get('forget') }),
  run,
  lines: gcLines,
  trouble: ({ items }) =>
    items.some(({ action }) => action === 'failed')
      ? 'not everything could be removed: the reasons are above'
      : undefined,
}
