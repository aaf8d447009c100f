import { quoted } from '../../refusal/refusal.ts'
import {
  type MountStatus,
  status as run,
  type StatusCommand,
  type StatusDocument,
  type VolumeStatus,
} from '../actions/status.ts'
import type { WalkStatus } from '../actions/volume.ts'
import { aligned, type Line } from '../text/output.ts'
import type { Work } from './form.ts'

export const status: Work<StatusCommand, StatusDocument> = {
  summary: 'list mounts, how their groups were given, and their state',
  text: [
    'Lists what modekeep has mounted on this node: pod, source, group, age and state (healthy, missing, stale, ' +
      'changed, orphaned, interrupted, unknown, busy: docs/commands.md). Ownership says how the group was given. walk: inodes ' +
      'were changed. idmap: the mount shows another group. option: mount options give it.',
    'Below are the volumes that walks have changed, with pending restores and the progress of running walks. Changes ' +
      'nothing.',
  ],
  options: {
    prometheus: "print metrics in Prometheus' text format; calls are counted since the first run (docs/metrics.md)",
    output: "replace this file atomically, for node_exporter's textfile collector",
  },
  examples: ['modekeep status', 'modekeep status --prometheus --output /var/lib/node_exporter/modekeep.prom'],
  isLooking: true,
  read({ given, faults }) {
    const isWanted = given.has('prometheus')
    if (given.has('output') && !isWanted) faults.push('--output is for --prometheus: give both, or leave it out')
    const output = given.get('output')
    if (output && !output.startsWith('/')) faults.push(`--output is ${quoted(output)}: write an absolute path`)
    if (given.has('json') && isWanted) faults.push('--json and --prometheus are two forms: keep one')
    return { verb: 'status', metrics: isWanted ? { output } : undefined }
  },
  run,
  lines: (document) => statusLines(document, Date.now()),
}

/** @param now milliseconds since the epoch, from which ages are told */
export function statusLines({ mounts, volumes, unrecorded, unreadable }: StatusDocument, now: number): Line[] {
  const mountTable = table(
    ['pod', 'source', 'group', 'ownership', 'age', 'state'],
    mounts.map((mount) => {
      const { pod, source, fsType, group, ownership, since, state } = mount
      const age = since === null ? '-' : ageOf(now - Date.parse(since))
      return [[pod || '-', source || fsType, String(group ?? '-'), ownership, age, state], remarks(mount)]
    }),
  )
  const volumeTable = table(
    ['volume', 'group', 'mounts', 'state', 'source'],
    volumes.map((about) => {
      const { volume, group, mounts, source, walk, fault, changed, name } = about
      const notices = [fault, changed, name].filter((text) => text !== null)
      const below = notices.map((text): Line => ({ text: `  ${text}`, style: 'notice' }))
      return [
        [volume, String(group ?? '-'), String(mounts), stateOf(about), source || '-'],
        [...walkLines(walk), ...below],
      ]
    }),
  )
  const noticed = (directory: string, text: string): Line => ({ text: `${directory}: ${text}`, style: 'notice' })
  const damaged = unreadable.map(({ directory, fault }) => noticed(directory, fault))
  const lost = unrecorded.map(({ directory, reason }) => noticed(directory, reason))
  return [
    ...(mounts.length === 0 ? ['modekeep has nothing mounted on this node'] : mountTable),
    ...(volumes.length === 0 ? [] : ['', ...volumeTable]),
    ...(lost.length === 0 ? [] : ['', { text: 'mounts without a record', style: 'strong' } as const, ...lost]),
    ...(damaged.length === 0
      ? []
      : ['', { text: 'records that cannot be read', style: 'strong' } as const, ...damaged]),
  ]
}

/** @param rows each with what is told below it */
function table(head: readonly string[], rows: readonly (readonly [cells: string[], below: Line[]])[]): Line[] {
  const [first = '', ...texts] = aligned([head, ...rows.map(([cells]) => cells)])
  return [{ text: first, style: 'strong' }, ...rows.flatMap(([, below], row) => [texts[row] ?? '', ...below])]
}

function stateOf({ group, complete, restorePending, mounts, walk, changed }: VolumeStatus): string {
  if (walk) return 'busy'
  if (group === null) return 'recorded'
  if (!complete) return 'interrupted'
  if (changed !== null) return 'changed'
  return restorePending && mounts === 0 ? 'restore pending' : 'walked'
}

function walkLines(walk: WalkStatus | null): Line[] {
  if (walk === null) return []
  const { pid, visited, changed } = walk
  const far = pid === null ? '' : ` (process ${pid}): ${visited} looked at, ${changed} changed`
  return [`  a walk or restore is under way${far}`]
}

function remarks({ directory, why, reason, walk, daemon }: MountStatus): Line[] {
  const lines: Line[] = [`  ${directory}`]
  if (why !== '' && why !== 'asked for') lines.push(`  ownership: ${why}`)
  lines.push(...walkLines(walk))
  if (daemon) {
    const text = daemon.pid === null ? '  daemon: dead' : `  daemon: process ${daemon.pid}, ${daemon.state}`
    lines.push(daemon.state === 'alive' ? text : { text, style: 'notice' })
  }
  if (reason !== '') lines.push({ text: `  ${reason}`, style: 'notice' })
  return lines
}

const UNITS = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1000 }

/** Milliseconds in the largest unit that fits, as kubectl shows ages. */
function ageOf(milliseconds: number): string {
  const [unit, size] = Object.entries(UNITS).find(([, length]) => milliseconds >= length) ?? ['s', UNITS.s]
  return `${Math.max(0, Math.floor(milliseconds / size))}${unit}`
}
