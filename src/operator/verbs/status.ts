import { quoted } from '../../errors/refusal.ts'
import { formatSkipped } from '../../store/volume-record.ts'
import { formatHidden } from '../actions/hidden-mounts.ts'
import {
  type MountStatus,
  status as run,
  type Selection,
  type StatusCommand,
  type StatusDocument,
  type VolumeStatus,
} from '../actions/status.ts'
import { trimEllipsis } from '../actions/target.ts'
import type { WalkStatus } from '../actions/volume.ts'
import { formatNextSteps } from '../text/next-steps.ts'
import type { Line } from '../text/output.ts'
import { type Column, cutMiddle, formatTable } from '../text/table.ts'
import type { SessionVerb, VerbArguments } from './form.ts'
import { readDirectoryOperand } from './paths.ts'
import { formatContainerTable } from './status-containers.ts'
import { addRemarks, formatAge, NARROW_COLUMNS, type StatusTableOptions } from './status-table.ts'

export const status: SessionVerb<StatusCommand, StatusDocument> = {
  operands: '[POD|MOUNT|VOLUME]',
  summary: 'list mounts, how their groups were given, and their state',
  text: [
    'Lists what modekeep has mounted on this node: pod, source, group, age and state (healthy, missing, stale, ' +
      'changed, partial, orphaned, interrupted, unknown, busy, in progress: docs/commands.md). Ownership says how the group was given. walk: inodes ' +
      'were changed. idmap: the mount shows another group. option: mount options give it.',
    'Below are the volumes that walks have changed, with pending restores and the progress of running walks, and those ' +
      "of containers, of any driver, that the runtime's plugin shows to a group (modekeep nri). Changes nothing.",
    'POD (NAMESPACE/NAME, a name or a UID), MOUNT (a mount directory) and VOLUME (a name or an unambiguous beginning of ' +
      'one) show what is of that alone. On a terminal the table is as wide as that; "-o wide" cuts nothing.',
  ],
  options: {
    namespace: "only what is mounted for this namespace's pods",
    format: 'a document (json, yaml), the table with every column, or names alone: mount directories and volumes',
    watch: 'stay, and show it anew every two seconds; elsewhere than on a terminal each time that it changed',
    prometheus: "print metrics in Prometheus' text format; calls are counted since the first run (docs/metrics.md)",
    output: "replace this file atomically, for node_exporter's textfile collector",
    json: 'one JSON document on stdout; with --watch one line each time',
  },
  examples: [
    'modekeep status',
    'modekeep status shop/cart-0 -o yaml',
    'modekeep status --namespace shop --watch',
    'modekeep status --prometheus --output /var/lib/node_exporter/modekeep.prom',
  ],
  isLooking: true,
  read(args) {
    const { given, faults } = args
    const isWanted = given.has('prometheus')
    if (given.has('output') && !isWanted) {
      faults.push('--output is for --prometheus: give both, or leave it out (a form is "-o json")')
    }
    const output = given.get('output')
    if (output && !output.startsWith('/')) faults.push(`--output is ${quoted(output)}: write an absolute path`)
    if (given.has('json') && isWanted) faults.push('--json and --prometheus are two forms: keep one')
    const form = given.get('format') as StatusCommand['form']
    if (form && isWanted) faults.push(`-o ${form} and --prometheus are two forms: keep one`)
    if (form && form !== 'json' && given.has('json')) faults.push(`-o ${form} and --json are two forms: keep one`)
    const isWatching = given.has('watch')
    if (isWatching && isWanted) faults.push('--prometheus prints once: leave out --watch')
    const selection = readSelection(args)
    if (selection && isWanted) faults.push('--prometheus is about the whole node: leave out what selects')
    return { verb: 'status', metrics: isWanted ? { output } : undefined, selection, form, isWatching }
  },
  run,
  lines(document, { command, width } = {}) {
    if (command?.form === 'name') return names(document)
    return formatStatus(document, Date.now(), { ...command, width })
  },
}

function readSelection(args: VerbArguments): Selection | undefined {
  const { words, given, faults } = args
  const namespace = given.get('namespace')
  const [word, ...more] = words
  if (more.length > 0) faults.push(`status takes one pod, mount or volume, got ${quoted(words)}: name one`)
  if (word === undefined) return namespace === undefined ? undefined : { namespace, of: undefined }
  if (/^[./]/.test(word)) return { namespace, of: { directory: readDirectoryOperand('status', args) } }
  const [first = '', name, ...parts] = word.split('/')
  if (name === undefined) return { namespace, of: { word: trimEllipsis(word) } }
  if (first === '' || name === '' || parts.length > 0) {
    faults.push(`status has ${quoted(word)}: write NAMESPACE/POD, a path, or a volume as it names it`)
  }
  if (namespace !== undefined && namespace !== first) {
    faults.push(`--namespace is ${quoted(namespace)}, and the pod ${quoted(word)}: leave one out`)
  }
  return { namespace, of: { pod: word } }
}

/** One a line: a mount directory, which begins with a slash, or a volume. */
function names({ mounts, volumes, unrecorded, unreadable }: StatusDocument): Line[] {
  const directories = [...mounts, ...unrecorded, ...unreadable].map(({ directory }) => directory)
  return [...new Set(directories), ...volumes.map(({ volume }) => volume)]
}

/** @param now milliseconds since the epoch, from which ages are told */
export function formatStatus(document: StatusDocument, now: number, look: StatusTableOptions = {}): Line[] {
  const { mounts, volumes, containers, unrecorded, unreadable } = document
  const noticed = (directory: string, text: string): Line => ({
    text: `${directory} is unknown: ${text}`,
    style: 'notice',
  })
  const damaged = unreadable.map(({ directory, fault }) => noticed(directory, fault))
  const lost = unrecorded.map(({ directory, reason }) => noticed(directory, reason))
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

function formatMountTable(
  mounts: readonly MountStatus[],
  now: number,
  { form, width: terminal }: StatusTableOptions,
): Line[] {
  const isWide = form === 'wide'
  const width = isWide ? undefined : terminal
  const isNarrow = (width ?? NARROW_COLUMNS) < NARROW_COLUMNS
  const columns: (Column & { of(mount: MountStatus): string })[] = [
    { head: 'pod', cut: { to: 9, at: 'middle' }, of: ({ pod }) => pod || '-' },
    { head: 'source', cut: { to: 9, at: 'middle' }, of: ({ source, fsType }) => source || fsType },
    { head: 'group', of: ({ group }) => String(group ?? '-') },
    { head: 'ownership', of: ({ ownership }) => ownership },
    { head: 'age', of: ({ since }) => (since === null ? '-' : formatAge(now - Date.parse(since))) },
    { head: 'state', of: ({ state }) => state },
    { head: 'type', of: ({ fsType }) => fsType },
    { head: 'access', of: ({ readOnly }) => (readOnly ? 'ro' : 'rw') },
    { head: 'volume', of: ({ volume }) => volume || '-' },
    { head: 'directory', of: ({ directory }) => directory },
  ]
  const left = isNarrow ? ['ownership', 'age'] : []
  const shown = (isWide ? columns : columns.slice(0, 6)).filter(({ head }) => !left.includes(head))
  const rows = mounts.map((mount) => shown.map(({ of }) => of(mount)))
  const below = mounts.map((mount) => {
    const { directory } = mount
    const place = isWide ? [] : [`  ${width === undefined ? directory : cutMiddle(directory, width - 2)}`]
    return [...place, ...formatMountRemarks(mount)]
  })
  return addRemarks(formatTable(shown, rows, width), below)
}

function formatVolumeTable(volumes: readonly VolumeStatus[], { form, width: terminal }: StatusTableOptions): Line[] {
  const width = form === 'wide' ? undefined : terminal
  const isNarrow = (width ?? NARROW_COLUMNS) < NARROW_COLUMNS
  const names = volumes.map(({ volume }) => volume)
  // A cut name stays unambiguous, so that it can be passed to any command, with its ellipsis.
  const to = Math.max(8, ...names.map((name) => findUniqueLength(name, names) + 1))
  const columns: (Column & { of(about: VolumeStatus): string })[] = [
    { head: 'volume', cut: { to, at: 'end' }, of: ({ volume }) => volume },
    { head: 'group', of: ({ group }) => String(group ?? '-') },
    { head: 'mounts', of: ({ mounts }) => String(mounts) },
    { head: 'state', of: formatVolumeState },
    { head: 'source', cut: { to: 12, at: 'middle' }, of: ({ source }) => source || '-' },
  ]
  const shown = columns.filter(({ head }) => !isNarrow || (head !== 'mounts' && head !== 'source'))
  const rows = volumes.map((about) => shown.map(({ of }) => of(about)))
  const below = volumes.map(({ source, group, walk, fault, changed, name, skipped }) => {
    const counts = skipped && group !== null ? formatSkipped(group, skipped) : null
    const notices = [fault, changed, counts, name].filter((text) => text !== null)
    const told = notices.map((text): Line => ({ text: `  ${text}`, style: 'notice' }))
    const place = isNarrow && width ? [`  ${cutMiddle(source || '-', width - 2)}`] : []
    return [...place, ...formatWalk(walk), ...told]
  })
  return addRemarks(formatTable(shown, rows, width), below)
}

/** Returns the length of the shortest prefix that no other name has. */
function findUniqueLength(name: string, names: readonly string[]): number {
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

function formatWalk(walk: WalkStatus | null): Line[] {
  if (walk === null) return []
  const { pid, visited, changed } = walk
  const far = pid === null ? '' : ` (process ${pid}): ${visited} looked at, ${changed} changed`
  return [`  a walk or restore is under way${far}`]
}

function formatMountRemarks({ why, reason, walk, daemon, hiddenSubmounts }: MountStatus): Line[] {
  const lines: Line[] = []
  if (why !== '' && why !== 'asked for') lines.push(`  ownership: ${why}`)
  lines.push(...formatWalk(walk))
  if (daemon) {
    const text = daemon.pid === null ? '  daemon: dead' : `  daemon: process ${daemon.pid}, ${daemon.state}`
    lines.push(daemon.state === 'alive' ? text : { text, style: 'notice' })
  }
  if (hiddenSubmounts) {
    const text = `  mounts inside of its source are hidden from the pod: ${formatHidden(hiddenSubmounts)}`
    lines.push({ text, style: 'notice' })
  }
  if (reason !== '') lines.push({ text: `  ${reason}`, style: 'notice' })
  return lines
}
