import { HELP_TEXT, JSON_TEXT, type VerbForm } from './form.ts'

const WALK_OPTIONS = {
  fsgroup: 'the group, a decimal number',
  'group-access':
    'keep (default): the group, and set-gid on directories, no permission bit; ' +
    'grant: also rw for the group, and x on directories, as kubelet does',
  'fs-group-change-policy':
    'OnRootMismatch (default): no walk if the root has the group already; Always: look at every inode',
  json: JSON_TEXT,
  help: HELP_TEXT,
} as const

export const VOLUME_VERBS = {
  plan: {
    operands: 'DIR',
    needs: '--fsgroup G',
    summary: 'print what apply and kubelet would change',
    text: [
      "Prints what apply would change in DIR, and what kubelet's own walk would change: counts, and the first changes " +
        'as ls -l shows them before and after. Changes nothing, not even an access time.',
    ],
    options: WALK_OPTIONS,
    completes: 'directories',
    examples: ['modekeep plan /srv/volumes/data --fsgroup 2000 --fs-group-change-policy Always'],
  },
  apply: {
    operands: 'DIR',
    needs: '--fsgroup G',
    summary: "give DIR to group G, as a pod's mount with ownership: walk does",
    text: [
      'Gives DIR to a group. What an inode was is recorded before it is changed. It is refused while a pod with another ' +
        'group uses DIR.',
      'It may be interrupted at any time. The same command continues, and restore puts everything back.',
    ],
    options: WALK_OPTIONS,
    completes: 'directories',
    examples: ['modekeep apply /srv/volumes/data --fsgroup 2000'],
  },
  restore: {
    operands: 'DIR|VOLUME',
    summary: 'put back all that modekeep has changed in DIR',
    text: [
      'Puts groups, modes and capabilities back to what they were before modekeep changed them. What users of the ' +
        'volume changed since is named and left. What cannot be put back now stays recorded. It may be interrupted and ' +
        'repeated.',
      'VOLUME is a name that status shows. The volume is found where it was last, or where it is mounted now. restore ' +
        'also runs a pending restore. It is refused while a pod uses the volume with a group that is on disk (by a walk, ' +
        'or mapped), with or without --force.',
    ],
    options: {
      'dry-run': 'print what would be put back; change nothing',
      force:
        'also put back what users of the volume changed since, unless its inode number may have been used again; ' +
        'set-id bits and capabilities return only to files whose content is still the recorded one',
      json: JSON_TEXT,
      help: HELP_TEXT,
    },
    completes: 'directories',
    examples: ['modekeep restore /srv/volumes/data --dry-run', 'modekeep restore /srv/volumes/data'],
    failure: 'an inode could not be put back; it stays recorded',
  },
} as const satisfies Readonly<Record<string, VerbForm>>
