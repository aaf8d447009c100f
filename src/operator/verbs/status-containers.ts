import type { ContainerStatus } from '../actions/containers.ts'
import type { Line } from '../text/output.ts'
import { type Column, formatTable } from '../text/table.ts'
import { addRemarks, formatAge, NARROW_COLUMNS, type StatusTableOptions } from './status-table.ts'

const hasNoShownGroup = (state: ContainerStatus['state']) => state === 'without' || state === 'unreadable'

/** Lines of at most 80 columns. */
const UNKNOWN_MEMBERSHIP: Line[] = [
  '  The runtime does not tell whether their processes are in the groups shown:',
  "  each has to be in its pod's supplementalGroups, or be its fsGroup.",
]

/** Formats the volumes for which containers requested a group. @param now milliseconds since the epoch */
export function formatContainerTable(
  containers: readonly ContainerStatus[],
  now: number,
  { form, width: terminal }: StatusTableOptions,
): Line[] {
  const isWide = form === 'wide'
  const width = isWide ? undefined : terminal
  const isNarrow = (width ?? NARROW_COLUMNS) < NARROW_COLUMNS
  const columns: (Column & { of(about: ContainerStatus): string })[] = [
    {
      head: 'container',
      cut: { to: 12, at: 'middle' },
      of: ({ pod, name, container }) => (pod === '' ? container : `${pod}/${name}`),
    },
    { head: 'volume', cut: { to: 9, at: 'middle' }, of: ({ volume }) => volume || '-' },
    { head: 'on disk', of: ({ onDisk }) => String(onDisk ?? '-') },
    { head: 'shown', of: ({ group, state }) => (hasNoShownGroup(state) ? '-' : String(group ?? 'its own')) },
    { head: 'age', of: ({ since }) => (since === null ? '-' : formatAge(now - Date.parse(since))) },
    { head: 'state', of: ({ state }) => state },
    { head: 'path', of: ({ destination }) => destination },
    { head: 'id', of: ({ container }) => container },
  ]
  const shown = (isWide ? columns : columns.slice(0, 6)).filter(({ head }) => !(isNarrow && head === 'age'))
  const rows = containers.map((about) => shown.map(({ of }) => of(about)))
  const below = containers.map(({ reason }): Line[] =>
    reason === '' ? [] : [{ text: `  ${reason}`, style: 'notice' }],
  )
  const isMembershipUnknown = containers.some(
    ({ isMember, group, state }) => isMember === null && group !== null && !hasNoShownGroup(state),
  )
  return [...addRemarks(formatTable(shown, rows, width), below), ...(isMembershipUnknown ? UNKNOWN_MEMBERSHIP : [])]
}
