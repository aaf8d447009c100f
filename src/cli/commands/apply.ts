import type { FsGroupRequest } from '../../config/mount-request.ts'
import { needsGroupWalk } from '../../fsgroup/apply-to-volume.ts'
import {
  refuseKernelFileSystem,
  refuseOwnLogOrConfig,
  refuseSystemDirectory,
} from '../../fsgroup/refused-directories.ts'
import { applyGroupToNodeDirectory, openNodeDirectoryVolume } from '../../fsgroup/volume-by-hand.ts'
import { deferHandleClose } from '../../kernel/host.ts'
import { parseMountFlags } from '../../kernel/mount-table/mount-flags.ts'
import { createWalkReport, type WalkReport } from '../../ownership/walk/report.ts'
import type { Session } from '../../state/session.ts'
import { reportExpectedInodeCount } from '../node-state/recorded-walk.ts'
import { countSkippedInodes, formatSkippedInodes, quoteForShell } from '../output/output.ts'
import { readDirectoryOperand } from './operands.ts'
import type { SessionVerb, VerbArguments } from './verb.ts'

/** A group to apply to a directory. */
export interface ApplyGroupCommand<Verb> {
  verb: Verb
  directory: string
  fsGroup: FsGroupRequest
  /** Also applies to a directory of the system. */
  isSure?: boolean
}

/** The request, as documents repeat it. Modes in documents are decimal numbers of permission bits. */
export interface ApplyGroupDocument<Verb> {
  verb: Verb
  directory: string
  /** Names the volume across reboots and paths. */
  volume: string
  group: number
  groupAccess: 'keep' | 'grant'
  policy: 'OnRootMismatch' | 'Always'
}

export interface ApplyDocument extends ApplyGroupDocument<'apply'> {
  /** False: the root has the group already and the policy is OnRootMismatch. */
  walked: boolean
  report: WalkReport
}

/** Applies a group to a directory, as a pod's mount does. */
export async function applyGroupToDirectory(
  session: Session,
  command: ApplyGroupCommand<'apply'>,
): Promise<ApplyDocument> {
  const { verb, directory, fsGroup } = command
  const { inodes } = session.host
  const opened = await openNodeDirectoryVolume(session, directory, parseMountFlags([], false))
  using _ = deferHandleClose(inodes, opened.tree)
  refuseKernelFileSystem(opened)
  refuseSystemDirectory(session.host, directory, command.isSure)
  refuseOwnLogOrConfig(opened, command.isSure)
  if (session.expect && needsGroupWalk(session, opened.tree, fsGroup, opened.volume))
    await reportExpectedInodeCount(session, opened)
  const report = await applyGroupToNodeDirectory(session, opened, fsGroup)
  const { groupId: group, access: groupAccess, changePolicy: policy } = fsGroup
  const request = { verb, directory, volume: opened.volume, group, groupAccess, policy }
  return { ...request, walked: report !== undefined, report: report ?? createWalkReport() }
}

/** The options of plan and apply. */
export const APPLY_OPTIONS = {
  fsgroup: 'the group, a decimal number',
  'group-access':
    'keep (default): the group, and set-gid on directories, no permission bit; ' +
    'grant: also rw for the group, and x on directories, as kubelet does',
  'fs-group-change-policy':
    'OnRootMismatch (default): no walk if the root has the group already; Always: look at every inode',
  force:
    'also what users of the volume changed since an earlier walk, unless its inode number may have been used again; ' +
    'looks at every inode',
  yes: 'also a directory of the system, such as /etc or all of /var/lib',
} as const

/** Reads the directory, and the group, access and policy to apply. */
export function readGroupOperands(verb: string, args: VerbArguments): Omit<ApplyGroupCommand<string>, 'verb'> {
  const { given, refuse } = args
  const directory = readDirectoryOperand(verb, args)
  if (!given.has('fsgroup')) refuse('--fsgroup is missing', 'name the group, as in --fsgroup 2000')
  const fsGroup: FsGroupRequest = {
    groupId: Number(given.get('fsgroup')),
    access: given.get('group-access') === 'grant' ? 'grant' : 'keep',
    changePolicy: given.get('fs-group-change-policy') === 'Always' ? 'Always' : 'OnRootMismatch',
    ...(given.has('force') && { isForced: true }),
  }
  return { directory, fsGroup, ...(given.has('yes') && { isSure: true }) }
}

export const applyVerb: SessionVerb<ApplyGroupCommand<'apply'>, ApplyDocument> = {
  operands: 'DIR',
  needs: '--fsgroup G',
  summary: "give DIR to group G, as a pod's mount with ownership: walk does",
  text: [
    'Gives DIR to a group. What an inode was is recorded before it is changed. It is refused while a pod with another ' +
      'group uses DIR.',
    'It may be interrupted at any time. The same command continues, and restore puts everything back.',
    'The result is durable: when later pods with restoreOnUnmount are unmounted, the volume returns to it. restore returns to the first ' +
      'state and drops it.',
  ],
  options: APPLY_OPTIONS,
  examples: [
    'modekeep apply /srv/volumes/data --fsgroup 2000',
    'modekeep apply /srv/volumes/data --fsgroup 2000 --force',
  ],
  read: (args) => ({ verb: 'apply', ...readGroupOperands('apply', args) }),
  run: applyGroupToDirectory,
  lines({ directory, group, groupAccess, walked, report }) {
    if (!walked) {
      const hint = '--fs-group-change-policy Always walks'
      return [`${directory}: the root has group ${group} already, so nothing was walked (${hint})`]
    }
    const counts = `${report.visited} looked at, ${report.changed} changed, ${report.alreadyRight} already right`
    return [
      { text: `${directory}: group ${group}, groupAccess ${groupAccess}`, style: 'strong' },
      `${counts}, ${countSkippedInodes(report)} left alone`,
      ...formatSkippedInodes(report),
    ]
  },
  interrupted: ({ directory }) =>
    'interrupted. What was changed is recorded: the same command continues, ' +
    `"modekeep restore ${quoteForShell(directory)}" puts it back`,
}
