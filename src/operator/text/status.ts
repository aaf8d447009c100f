import type { MountStatus, StatusDocument, VolumeStatus, WalkStatus } from '../actions/status.ts'
import { aligned, type Line } from './line.ts'

/** `status` for people. */
export function statusLines({ mounts, volumes, unreadable }: StatusDocument, now: number): Line[] {
  const [first = '', ...rows] = aligned([
    ['pod', 'source', 'group', 'ownership', 'age', 'state'],
    ...mounts.map((mount) => [
      mount.pod || '-',
      mount.source || mount.fsType,
      mount.group === null ? '-' : String(mount.group),
      mount.ownership,
      mount.since === null ? '-' : age(now - Date.parse(mount.since)),
      mount.state,
    ]),
  ])
  const listed: Line[] = [
    { text: first, style: 'strong' },
    ...mounts.flatMap((mount, index) => [{ text: rows[index] ?? '' }, ...remarks(mount)]),
  ]
  const none: Line[] = [{ text: 'modekeep has nothing mounted on this node' }]
  return [...(mounts.length === 0 ? none : listed), ...volumeLines(volumes), ...unreadableLines(unreadable)]
}

function unreadableLines(unreadable: StatusDocument['unreadable']): Line[] {
  const lines = unreadable.map(({ directory, fault }): Line => ({ text: `${directory}: ${fault}`, style: 'notice' }))
  return lines.length === 0 ? [] : [{ text: '' }, { text: 'records that cannot be read', style: 'strong' }, ...lines]
}

function volumeLines(volumes: readonly VolumeStatus[]): Line[] {
  if (volumes.length === 0) return []
  const [head = '', ...rows] = aligned([
    ['volume', 'group', 'mounts', 'state', 'source'],
    ...volumes.map((volume) => [
      volume.volume,
      volume.group === null ? '-' : String(volume.group),
      String(volume.mounts),
      stateOf(volume),
      volume.source || '-',
    ]),
  ])
  return [
    { text: '' },
    { text: head, style: 'strong' },
    ...volumes.flatMap(({ walk, fault }, index) => [
      { text: rows[index] ?? '' },
      ...walkLines(walk),
      ...(fault === null ? [] : [{ text: `  ${fault}`, style: 'notice' } as const]),
    ]),
  ]
}

function stateOf({ group, complete, restorePending, mounts, walk }: VolumeStatus): string {
  if (walk) return 'busy'
  if (group === null) return 'recorded'
  if (!complete) return 'interrupted'
  return restorePending && mounts === 0 ? 'restore pending' : 'walked'
}

function walkLines(walk: WalkStatus | null): Line[] {
  if (walk === null) return []
  const by = walk.pid === null ? '' : ` (process ${walk.pid})`
  const far = walk.pid === null ? '' : `: ${walk.visited} looked at, ${walk.changed} changed`
  return [{ text: `  a walk or restore is under way${by}${far}` }]
}

function remarks({ directory, why, reason, walk, daemon }: MountStatus): Line[] {
  const lines: Line[] = [{ text: `  ${directory}` }]
  if (why !== '' && why !== 'asked for') lines.push({ text: `  ownership: ${why}` })
  lines.push(...walkLines(walk))
  if (daemon) lines.push(daemonLine(daemon))
  if (reason !== '') lines.push({ text: `  ${reason}`, style: 'notice' })
  return lines
}

function daemonLine({ pid, state }: NonNullable<MountStatus['daemon']>): Line {
  const text = pid === null ? '  daemon: dead' : `  daemon: process ${pid}, ${state}`
  return state === 'alive' ? { text } : { text, style: 'notice' }
}

const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1000],
] as const

/** Milliseconds in the largest unit that fits, as kubectl shows ages. */
function age(milliseconds: number): string {
  const [unit, size] = UNITS.find(([, length]) => milliseconds >= length) ?? ['s', 1000]
  return `${Math.max(0, Math.floor(milliseconds / size))}${unit}`
}
