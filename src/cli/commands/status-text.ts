import { formatReasonWithCode } from '../../errors/fault.ts'
import type { MountState } from '../../repair/state.ts'
import { REQUESTED_METHOD_REASON } from '../../state/mount-record.ts'
import { isTextVolumeId } from '../../state/volume-id.ts'
import { explainUnrestoredInodes, formatSkippedByReason } from '../../state/volume-record.ts'
import type { ContainerStatus } from '../node-state/containers.ts'
import { formatHiddenMounts } from '../node-state/hidden-mounts.ts'
import type { WalkStatus } from '../node-state/recorded-walk.ts'
import {
  cutTextMiddle,
  formatAge,
  formatItemTable,
  type ItemColumn,
  measureTable,
  type OutputLine,
  quoteForShell,
} from '../output/output.ts'
import type { MountStatus, StatusCommand, StatusDocument, VolumeStatus } from './status-document.ts'

export interface StatusTableOptions extends Pick<StatusCommand, 'form' | 'selection'> {
  width?: number | undefined
}

/** @param now milliseconds since the epoch, from which ages are told */
export function formatStatus(document: StatusDocument, now: number, look: StatusTableOptions = {}): OutputLine[] {
  const { mounts, volumes, containers, unrecorded, unreadable } = document
  const noticed = (directory: string, text: string): OutputLine => ({
    text: `${directory} is unknown: ${text}`,
    style: 'notice',
  })
  const damaged = unreadable.map(({ directory, fault }) => noticed(directory, fault))
  const lost = unrecorded.map(({ directory, reason }) =>
    noticed(directory, formatReasonWithCode({ reason, code: 'mount-unrecorded' })),
  )
  return [
    ...(mounts.length === 0 ? [formatNothingMounted(look)] : formatMountTable(mounts, now, look)),
    ...(volumes.length === 0 ? [] : ['', ...formatVolumeTable(volumes, look)]),
    ...(containers.length === 0 ? [] : ['', ...formatContainerTable(containers, now, look)]),
    ...(lost.length === 0 ? [] : ['', { text: 'mounts without a record', style: 'strong' } as const, ...lost]),
    ...(damaged.length === 0
      ? []
      : ['', { text: 'records that cannot be read', style: 'strong' } as const, ...damaged]),
    ...formatNextSteps(document),
  ]
}

function formatNothingMounted({ selection }: StatusTableOptions): string {
  const { namespace, of } = selection ?? {}
  const whose = namespace === undefined ? '' : ` for pods of namespace ${namespace}`
  return `modekeep has nothing${of === undefined ? '' : ' of it'} mounted on this node${whose}`
}

function formatMountTable(mounts: readonly MountStatus[], now: number, look: StatusTableOptions): OutputLine[] {
  const { isWide, width } = measureTable(look)
  const columns: ItemColumn<MountStatus>[] = [
    { head: 'pod', cut: { to: 9, at: 'middle' }, of: ({ pod }) => pod || '-' },
    { head: 'source', cut: { to: 9, at: 'middle' }, of: ({ source, fsType }) => source || fsType },
    { head: 'group', of: ({ group }) => String(group ?? '-') },
    { head: 'ownership', of: ({ ownership }) => ownership, only: 'not narrow' },
    { head: 'age', of: ({ since }) => (since === null ? '-' : formatAge(now - Date.parse(since))), only: 'not narrow' },
    { head: 'state', of: ({ state }) => state },
    { head: 'type', of: ({ fsType }) => fsType, only: 'wide' },
    { head: 'access', of: ({ readOnly }) => (readOnly ? 'ro' : 'rw'), only: 'wide' },
    { head: 'volume', of: ({ volume }) => volume || '-', only: 'wide' },
    { head: 'directory', of: ({ directory }) => directory, only: 'wide' },
  ]
  return formatItemTable(mounts, columns, look, (mount) => {
    const { directory } = mount
    const place = isWide ? [] : [`  ${width === undefined ? directory : cutTextMiddle(directory, width - 2)}`]
    return [...place, ...formatMountRemarks(mount)]
  })
}

function formatVolumeTable(volumes: readonly VolumeStatus[], look: StatusTableOptions): OutputLine[] {
  const { isNarrow, width } = measureTable(look)
  const names = volumes.map(({ volume }) => volume)
  // A cut name stays unambiguous, so that it can be passed to any command, with its ellipsis.
  const to = Math.max(8, ...names.map((name) => findUniquePrefixLength(name, names) + 1))
  const columns: ItemColumn<VolumeStatus>[] = [
    { head: 'volume', cut: { to, at: 'end' }, of: ({ volume }) => volume },
    { head: 'group', of: ({ group }) => String(group ?? '-') },
    { head: 'mounts', of: ({ mounts }) => String(mounts), only: 'not narrow' },
    { head: 'state', of: formatVolumeState },
    { head: 'source', cut: { to: 12, at: 'middle' }, of: ({ source }) => source || '-', only: 'not narrow' },
  ]
  return formatItemTable(volumes, columns, look, ({ source, group, walk, fault, changed, name, skipped }) => {
    const counts = skipped && group !== null ? formatSkippedByReason(group, skipped) : null
    const notices = [fault, changed, counts, name].filter((text) => text !== null)
    const told = notices.map((text): OutputLine => ({ text: `  ${text}`, style: 'notice' }))
    const place = isNarrow && width ? [`  ${cutTextMiddle(source || '-', width - 2)}`] : []
    return [...place, ...formatRunningWalk(walk), ...told]
  })
}

/** Returns the length of the shortest prefix that no other name has. */
function findUniquePrefixLength(name: string, names: readonly string[]): number {
  const others = names.filter((other) => other !== name)
  for (let length = 1; length < name.length; length++) {
    if (!others.some((other) => other.startsWith(name.slice(0, length)))) return length
  }
  return name.length
}

function formatVolumeState({ group, complete, left, restorePending, mounts, walk, changed }: VolumeStatus): string {
  if (walk) return 'in progress'
  if (group === null) return 'recorded'
  if (left !== null) return left === 0 ? 'restored' : 'partly restored'
  if (!complete) return 'interrupted'
  if (changed !== null) return 'changed'
  return restorePending && mounts === 0 ? 'restore pending' : 'walked'
}

function formatRunningWalk(walk: WalkStatus | null): OutputLine[] {
  if (walk === null) return []
  const { pid, visited, changed } = walk
  const far = pid === null ? '' : ` (process ${pid}): ${visited} looked at, ${changed} changed`
  return [`  a walk or restore is under way${far}`]
}

function formatMountRemarks({ why, reason, code, walk, daemon, hiddenSubmounts }: MountStatus): OutputLine[] {
  const lines: OutputLine[] = []
  if (why !== '' && why !== REQUESTED_METHOD_REASON) lines.push(`  ownership: ${why}`)
  lines.push(...formatRunningWalk(walk))
  if (daemon) {
    const text = daemon.pid === null ? '  daemon: dead' : `  daemon: process ${daemon.pid}, ${daemon.state}`
    lines.push(daemon.state === 'alive' ? text : { text, style: 'notice' })
  }
  if (hiddenSubmounts) {
    const text = `  mounts inside of its source are hidden from the pod: ${formatHiddenMounts(hiddenSubmounts)}`
    lines.push({ text, style: 'notice' })
  }
  if (reason !== '') lines.push({ text: `  ${formatReasonWithCode({ reason, code })}`, style: 'notice' })
  return lines
}

const isContainerGroupHidden = (state: ContainerStatus['state']) => state === 'without' || state === 'unreadable'

/** Lines of at most 80 columns. */
const UNKNOWN_GROUP_MEMBERSHIP_NOTE: OutputLine[] = [
  '  The runtime does not tell whether their processes are in the groups shown:',
  "  each has to be in its pod's supplementalGroups, or be its fsGroup.",
]

/** Formats the volumes for which containers requested a group. @param now milliseconds since the epoch */
export function formatContainerTable(
  containers: readonly ContainerStatus[],
  now: number,
  look: StatusTableOptions,
): OutputLine[] {
  const columns: ItemColumn<ContainerStatus>[] = [
    {
      head: 'container',
      cut: { to: 12, at: 'middle' },
      of: ({ pod, name, container }) => (pod === '' ? container : `${pod}/${name}`),
    },
    { head: 'volume', cut: { to: 9, at: 'middle' }, of: ({ volume }) => volume || '-' },
    { head: 'on disk', of: ({ onDisk }) => String(onDisk ?? '-') },
    { head: 'shown', of: ({ group, state }) => (isContainerGroupHidden(state) ? '-' : String(group ?? 'its own')) },
    { head: 'age', of: ({ since }) => (since === null ? '-' : formatAge(now - Date.parse(since))), only: 'not narrow' },
    { head: 'state', of: ({ state }) => state },
    { head: 'path', of: ({ destination }) => destination, only: 'wide' },
    { head: 'id', of: ({ container }) => container, only: 'wide' },
  ]
  const isMembershipUnknown = containers.some(
    ({ isMember, group, state }) => isMember === null && group !== null && !isContainerGroupHidden(state),
  )
  const table = formatItemTable(containers, columns, look, ({ reason }) =>
    reason === '' ? [] : [{ text: `  ${reason}`, style: 'notice' }],
  )
  return [...table, ...(isMembershipUnknown ? UNKNOWN_GROUP_MEMBERSHIP_NOTE : [])]
}

/** The kind of next step for a mount, by its state; undefined: none. */
const NEXT_STEP_BY_MOUNT_STATE: Readonly<Record<MountState, string | undefined>> = {
  healthy: undefined,
  'in progress': undefined,
  busy: 'process',
  missing: 'heal',
  stale: 'heal',
  interrupted: 'heal',
  orphaned: 'heal',
  changed: 'command',
  partial: 'command',
  unknown: 'person',
}

/** Formats the next steps, most urgent first; none if all mounts and volumes are well. */
function formatNextSteps({ mounts, volumes, containers, unrecorded, unreadable }: StatusDocument): OutputLine[] {
  const by = (step: string) => mounts.filter(({ state }) => NEXT_STEP_BY_MOUNT_STATE[state] === step)
  const heals = by('heal').filter(isMountRepairable)
  const failing = by('heal').filter((mount) => !isMountRepairable(mount))
  const changed = volumes.filter((volume) => volume.changed !== null)
  const broken = [...containers.filter(({ state }) => state === 'unreadable'), ...volumes.filter(({ fault }) => fault)]
  const hints: Record<string, number> = {
    [`"modekeep heal" repairs what is ${listMountStates(heals)}; with --dry-run it says what it would do`]:
      heals.length,
    [`heal cannot repair what is ${listMountStates(failing)} here: the line below each such mount says why and what to do`]:
      failing.length,
    'the line below each mount or volume that is changed or partial names the command that gives it its group again':
      by('command').length + changed.length,
    'the line below each busy mount names the processes to end before another node mounts its disk or image':
      by('process').length,
    'heal leaves what is unknown or without a record: the reason beside it says what to do':
      by('person').length + unrecorded.length,
    '"modekeep doctor" says what to do about the records that cannot be used': unreadable.length + broken.length,
  }
  const steps = [
    ...Object.keys(hints).filter((step) => hints[step]),
    ...volumes.flatMap(formatVolumeSteps),
    ...formatUnenforcedSteps(mounts),
  ]
  if (steps.length === 0) return []
  return [
    '',
    { text: 'next', style: 'strong' },
    ...steps.map((text): OutputLine => ({ text: `  ${text}`, style: 'notice' })),
  ]
}

const isMountRepairable = ({ repair }: MountStatus): boolean => repair !== 'failed' && repair !== 'none'

function listMountStates(mounts: readonly MountStatus[]): string {
  return [...new Set(mounts.map(({ state }) => state))].join(', ')
}

function formatVolumeSteps(about: VolumeStatus): string[] {
  const { volume, source, complete, left } = about
  if (about.walk !== null || about.fault !== null || about.group === null) return []
  // A server's volume is restored through a mount of it, and its restore is refused while there is none.
  const mount = about.mounts === 0 && isTextVolumeId(volume) ? `mount ${source} by a pod or by hand, then ` : ''
  const restore = `${mount}"modekeep restore ${quoteForShell(volume)}"`
  if (about.restorePending && about.mounts === 0)
    return [`${restore} puts the volume back, which its last unmount could not`]
  const kept = left === null ? undefined : explainUnrestoredInodes({ volume, left })
  if (kept !== undefined) return [`${source}: ${kept}`]
  if (complete || left !== null) return []
  return [
    `${restore} puts back the volume of an interrupted walk; its next mount, or "modekeep apply", goes on with it`,
  ]
}

function formatUnenforcedSteps(mounts: readonly MountStatus[]): string[] {
  const options = [...new Set(mounts.flatMap(({ unenforced }) => unenforced))]
  if (options.length === 0) return []
  return [
    `containers on runc 1.2 or newer do not have ${options.join(', ')} of their volumes: start "modekeep nri", or give the pods "hostUsers: false" (docs/mounts.md)`,
  ]
}
