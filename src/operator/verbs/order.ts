import type { ByHandOrder } from '../../fs-group/by-hand.ts'
import { directoryOf } from './directory-argument.ts'
import { type Arguments, JSON_TEXT } from './form.ts'

export const WALK_OPTIONS = {
  fsgroup: 'the group, a decimal number',
  'group-access':
    'keep (default): the group, and set-gid on directories, no permission bit; ' +
    'grant: also rw for the group, and x on directories, as kubelet does',
  'fs-group-change-policy':
    'OnRootMismatch (default): no walk if the root has the group already; Always: look at every inode',
  json: JSON_TEXT,
} as const

/** The directory that plan and apply are about, and what it is given. */
export function orderOf(verb: string, args: Arguments): { directory: string; order: ByHandOrder } {
  const { given, faults } = args
  const directory = directoryOf(verb, args)
  if (!given.has('fsgroup')) faults.push('--fsgroup is missing: name the group, as in --fsgroup 2000')
  const order: ByHandOrder = {
    group: Number(given.get('fsgroup')),
    access: given.get('group-access') === 'grant' ? 'grant' : 'keep',
    policy: given.get('fs-group-change-policy') === 'Always' ? 'Always' : 'OnRootMismatch',
  }
  return { directory, order }
}
