import type { NodeMeasurement } from './node/calls.ts'
import type { FileSystem } from './options.ts'
import { median } from './statistics.ts'

export const CASES = ['first walk', 'nothing to do', 'repeated mount'] as const
export type Case = (typeof CASES)[number]

/** One case of one peer on one tree. */
export interface Measurement {
  fileSystem: FileSystem
  files: number
  case: Case
  peer: string
  milliseconds: number[]
}

export interface Absent {
  what: string
  reason: string
}

export interface Results {
  machine: Record<string, string>
  rounds: number
  measurements: Measurement[]
  absent: Absent[]
  /** Calls on a node with many mounts. */
  node: NodeMeasurement[]
}

/** What the others are compared with, by case. */
export const YARDSTICK: Readonly<Record<Case, string>> = {
  'first walk': 'kubelet',
  'nothing to do': 'kubelet',
  'repeated mount': 'bash+jq driver',
}

/** Collects the rounds of each measurement. */
export function addTime(all: Measurement[], of: Omit<Measurement, 'milliseconds'>, milliseconds: number): void {
  const found = find(all, of)
  if (found) found.milliseconds.push(milliseconds)
  else all.push({ ...of, milliseconds: [milliseconds] })
}

/** Median in milliseconds; undefined if it was not measured. */
export function timeOf(all: readonly Measurement[], of: Omit<Measurement, 'milliseconds'>): number | undefined {
  const found = find(all, of)
  return found && median(found.milliseconds)
}

/** Median over the yardstick's median; undefined if either was not measured. */
export function ratioOf(all: readonly Measurement[], of: Omit<Measurement, 'milliseconds'>): number | undefined {
  const [own, yardstick] = [timeOf(all, of), timeOf(all, { ...of, peer: YARDSTICK[of.case] })]
  return own === undefined || yardstick === undefined ? undefined : own / yardstick
}

function find(all: readonly Measurement[], of: Omit<Measurement, 'milliseconds'>): Measurement | undefined {
  return all.find(
    (one) => one.fileSystem === of.fileSystem && one.files === of.files && one.case === of.case && one.peer === of.peer,
  )
}
