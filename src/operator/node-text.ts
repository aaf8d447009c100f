import type { HealDocument, MountStatus, StatusDocument } from './document.ts'
import type { Line } from './text.ts'

/** `status` for people. */
export function statusLines({ mounts }: StatusDocument, now: number): Line[] {
  if (mounts.length === 0) return [{ text: 'modekeep has nothing mounted on this node' }]
  const rows = mounts.map((mount) => [
    mount.pod || '-',
    mount.source || mount.fsType,
    mount.group === null ? '-' : String(mount.group),
    mount.ownership,
    mount.since === null ? '-' : age(now - Date.parse(mount.since)),
    mount.health,
  ])
  const [head, ...body] = aligned([['pod', 'source', 'group', 'ownership', 'age', 'health'], ...rows])
  return [
    { text: head ?? '', style: 'strong' },
    ...mounts.flatMap((mount, index) => [{ text: body[index] ?? '' }, ...remarks(mount)]),
  ]
}

function remarks({ directory, why, health, reason, walk, daemon }: MountStatus): Line[] {
  const lines: Line[] = [{ text: `  ${directory}` }]
  if (why !== '' && why !== 'asked for') lines.push({ text: `  ownership: ${why}` })
  if (walk) lines.push({ text: `  a walk is under way: ${walk.visited} looked at, ${walk.changed} changed` })
  if (daemon) lines.push(daemonLine(daemon))
  if (health !== 'healthy') lines.push({ text: `  ${reason}`, style: 'notice' })
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

/** `heal` for people: what was not well, and the count of what was. */
export function healLines({ isDry, mounts, subPaths }: HealDocument): Line[] {
  const would = isDry ? 'would be ' : ''
  const rows = mounts
    .filter(({ outcome }) => outcome !== 'healthy')
    .map(({ outcome, directory, reason }) => [worded(outcome, would), directory, reason])
  const others = subPaths.map(({ action, mountPoint, reason }) => [action, mountPoint, reason])
  const healthy = mounts.length - rows.length
  return [
    { text: `${healthy} of ${mounts.length} mounts healthy${isDry ? '. Nothing was changed.' : ''}`, style: 'strong' },
    ...aligned([...rows, ...others]).map((text) => ({ text })),
  ]
}

function worded(outcome: string, would: string): string {
  return ['left', 'failed', 'busy'].includes(outcome) ? outcome : `${would}${outcome}`
}

/** Columns as wide as their widest cell; the last one is as long as it likes. */
function aligned(rows: readonly string[][]): string[] {
  const columns = Math.max(0, ...rows.map((row) => row.length))
  const widths = Array.from({ length: columns }, (_, column) =>
    Math.max(...rows.map((row) => row[column]?.length ?? 0)),
  )
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  )
}
