import { HELP_TEXT, JSON_TEXT, type VerbForm } from './form.ts'

const WALK_OPTIONS = {
  fsgroup: 'the group, a decimal number',
  'group-access':
    'keep (default): the group, and set-gid on directories, no permission bit; ' +
    'grant: also rw for the group, and x on directories, as kubelet does',
  policy: 'OnRootMismatch (default): no walk where the root has the group already; Always: look at every inode',
  json: JSON_TEXT,
  help: HELP_TEXT,
} as const

export const VOLUME_VERBS = {
  plan: {
    operands: 'DIR',
    needs: '--fsgroup G',
    summary: 'say what apply would change, and what kubelet would; changes nothing',
    text: [
      "Says what apply would change in DIR, and beside it what kubelet's own walk would: counts, and the first changes " +
        'as ls -l would show them before and after. Changes nothing, not even an access time.',
    ],
    options: WALK_OPTIONS,
    completes: 'directories',
    examples: ['modekeep plan /srv/volumes/data --fsgroup 2000 --policy Always'],
  },
  apply: {
    operands: 'DIR',
    needs: '--fsgroup G',
    summary: "give DIR to group G, as a pod's mount with ownership: walk does",
    text: [
      'Gives DIR to a group, recording what was there before. It is refused while a pod with another group uses DIR.',
      'May be interrupted at any time: what was changed is recorded. The same command goes on, and restore puts back.',
    ],
    options: WALK_OPTIONS,
    completes: 'directories',
    examples: ['modekeep apply /srv/volumes/data --fsgroup 2000'],
  },
  restore: {
    operands: 'DIR|VOLUME',
    summary: 'put back all that modekeep has changed in DIR',
    text: [
      'Puts groups, modes and capabilities back to what they were before modekeep changed them. What its users changed ' +
        'since is named and left; what cannot be put back now stays recorded. May be interrupted and repeated.',
      'VOLUME is a volume as status names it: it is found where it was last, or where it is mounted now. ' +
        'A restore that is owed is paid so too. It is refused while a pod uses the volume with a group that is on disk ' +
        '(by a walk, or mapped), with or without --force.',
    ],
    options: {
      'dry-run': 'say what would be put back, and touch nothing',
      force:
        'put back also what its users changed since, unless its inode number may have been used again; ' +
        'set-id bits and capabilities come back only to content that is still the recorded one',
      json: JSON_TEXT,
      help: HELP_TEXT,
    },
    completes: 'directories',
    examples: ['modekeep restore /srv/volumes/data --dry-run', 'modekeep restore /srv/volumes/data'],
    failure: 'not all could be put back; it stays recorded',
  },
} as const satisfies Readonly<Record<string, VerbForm>>
