import { setTimeout } from 'node:timers/promises'
import { quoteValue, Refusal } from '../../errors/refusal.ts'
import type { Session } from '../../state/session.ts'
import type { OutputLine } from '../output/output.ts'
import { readDirectoryOperand, resolveVolumeName } from './operands.ts'
import { isVolumeIdPrefix, trimEllipsis } from './options.ts'
import {
  type MountStatus,
  readNodeStatus,
  type StatusCommand,
  type StatusDocument,
  type StatusSelection,
  type VolumeStatus,
} from './status-document.ts'
import { formatStatus } from './status-text.ts'
import type { SessionVerb, VerbArguments } from './verb.ts'

export const statusVerb: SessionVerb<StatusCommand, StatusDocument> = {
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
    const { given, refuse } = args
    const isWanted = given.has('prometheus')
    if (given.has('output') && !isWanted) {
      refuse('--output is for --prometheus', 'give both, or leave it out (a form is "-o json")')
    }
    const output = given.get('output')
    if (output && !output.startsWith('/')) refuse(`--output is ${quoteValue(output)}`, `write an absolute path`)
    if (given.has('json') && isWanted) refuse('--json and --prometheus are two forms', 'keep one')
    const form = given.get('format') as StatusCommand['form']
    if (form && isWanted) refuse(`-o ${form} and --prometheus are two forms`, `keep one`)
    if (form && form !== 'json' && given.has('json')) refuse(`-o ${form} and --json are two forms`, `keep one`)
    const isWatching = given.has('watch')
    if (isWatching && isWanted) refuse('--prometheus prints once', 'leave out --watch')
    const selection = readStatusSelection(args)
    if (selection && isWanted) refuse('--prometheus is about the whole node', 'leave out what selects')
    return { verb: 'status', metrics: isWanted ? { output } : undefined, selection, form, isWatching }
  },
  run: readSelectedStatus,
  lines(document, { command, width } = {}) {
    if (command?.form === 'name') return formatStatusNames(document)
    return formatStatus(document, Date.now(), { ...command, width })
  },
}

function readStatusSelection(args: VerbArguments): StatusSelection | undefined {
  const { words, given, refuse } = args
  const namespace = given.get('namespace')
  const [word, ...more] = words
  if (more.length > 0) refuse(`status takes one pod, mount or volume, got ${quoteValue(words)}`, `name one`)
  if (word === undefined) return namespace === undefined ? undefined : { namespace, of: undefined }
  if (/^[./]/.test(word)) return { namespace, of: { directory: readDirectoryOperand('status', args) } }
  const [first = '', name, ...parts] = word.split('/')
  if (name === undefined) return { namespace, of: { word: trimEllipsis(word) } }
  if (first === '' || name === '' || parts.length > 0) {
    refuse(`status has ${quoteValue(word)}`, `write NAMESPACE/POD, a path, or a volume as it names it`)
  }
  if (namespace !== undefined && namespace !== first) {
    refuse(`--namespace is ${quoteValue(namespace)}, and the pod ${quoteValue(word)}`, `leave one out`)
  }
  return { namespace, of: { pod: word } }
}

/** One a line: a mount directory, which begins with a slash, or a volume. */
function formatStatusNames({ mounts, volumes, unrecorded, unreadable }: StatusDocument): OutputLine[] {
  const directories = [...mounts, ...unrecorded, ...unreadable].map(({ directory }) => directory)
  return [...new Set(directories), ...volumes.map(({ volume }) => volume)]
}

/** The interval of watch(1). */
const STATUS_POLL_INTERVAL_MS = 2000

/**
 * Reads and shows the status repeatedly, until the process ends or the reader closes the stream.
 * @param show returns false if the reader has closed the stream
 */
export async function pollStatus<Status>(
  read: () => Promise<Status>,
  show: (status: Status) => boolean,
): Promise<void> {
  while (show(await read())) await setTimeout(STATUS_POLL_INTERVAL_MS)
}

/** Shows only a status that differs from the last one, for a stream that is no terminal. */
export function skipUnchangedStatus<Status>(show: (status: Status) => boolean): (status: Status) => boolean {
  let before: string | undefined
  return (status) => {
    const now = JSON.stringify(status)
    if (now === before) return true
    before = now
    return show(status)
  }
}

/** Reports modekeep's mounts on this node and the recorded volumes. Changes nothing. */
export async function readSelectedStatus(
  session: Session,
  { selection }: Partial<StatusCommand> = {},
): Promise<StatusDocument> {
  const all = await readNodeStatus(session)
  return selection === undefined ? all : selectStatus(session, all, selection)
}

/** @throws {Refusal} if the named mount, pod or volume is unknown or ambiguous */
function selectStatus(session: Session, all: StatusDocument, { namespace, of }: StatusSelection): StatusDocument {
  const isSelected = createStatusFilter(session, all, of)
  const isInNamespace = ({ pod }: { pod: string }) => namespace === undefined || pod.startsWith(`${namespace}/`)
  const mounts = all.mounts.filter((mount) => isSelected(mount) && isInNamespace(mount))
  const containers = all.containers.filter(
    (one) => isSelected({ pod: one.pod, directory: one.source }) && isInNamespace(one),
  )
  const shown = new Set(mounts.map(({ volume }) => volume))
  const isNamed = ({ volume }: VolumeStatus) => of !== undefined && namespace === undefined && isSelected({ volume })
  const isSelectedDirectory = ({ directory }: { directory: string }) =>
    namespace === undefined && isSelected({ directory })
  const found = {
    verb: all.verb,
    mounts,
    volumes: all.volumes.filter((about) => shown.has(about.volume) || isNamed(about)),
    containers,
    unrecorded: all.unrecorded.filter(isSelectedDirectory),
    unreadable: all.unreadable.filter(isSelectedDirectory),
  }
  const isNothing = [mounts, containers, found.volumes, found.unrecorded, found.unreadable].every(
    ({ length }) => length === 0,
  )
  if (of === undefined || !isNothing) return found
  const [name] = Object.values(of)
  throw Refusal.of(
    'usage',
    `nothing of ${quoteValue(name)} is mounted or recorded on this node`,
    `"modekeep status" lists what is`,
  )
}

type StatusSubject = Partial<Pick<MountStatus, 'directory' | 'volume' | 'pod'>>

function createStatusFilter(
  session: Session,
  { mounts, volumes, containers }: StatusDocument,
  of: StatusSelection['of'],
): (one: StatusSubject) => boolean {
  if (of === undefined) return () => true
  if ('directory' in of) return ({ directory }) => directory === of.directory
  if ('pod' in of) return ({ pod }) => pod === of.pod
  const { word } = of
  const isOfPod = ({ pod = '', directory = '' }: StatusSubject) =>
    pod.endsWith(`/${word}`) || directory.includes(`/pods/${word}/`)
  const containerSubjects = containers.map(({ pod, source }) => ({ pod, directory: source }))
  if ([...mounts, ...containerSubjects].some(isOfPod)) return isOfPod
  const names = [...new Set([...mounts, ...volumes].map(({ volume }) => volume))].filter(Boolean)
  const named = isVolumeIdPrefix(word) ? resolveVolumeName(session, word, names) : undefined
  return (one) => (named === undefined ? isOfPod(one) : one.volume === named)
}
