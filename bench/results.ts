import type { Cost } from './command.ts'
import type { NodeMeasurement } from './node/calls.ts'
import { median } from './statistics.ts'
import type { Counts } from './syscalls.ts'
import { nameOf, type Tree } from './trees.ts'

/** What a walker may do with a tree, in this order. */
export const WALKS = ['survey', 'first walk', 'nothing to do', 'restore'] as const
export type Walk = (typeof WALKS)[number]
export type Case = Walk | 'call'

/** One case of one peer on one tree, each round's cost. */
export interface Measurement {
  /** Its name. */
  tree: string
  case: Case
  peer: string
  costs: Cost[]
}

export interface Absent {
  what: string
  reason: string
}

/** System calls of a repeated mount's main thread. */
export interface SystemCalls {
  /** 10 files, 1 other mount. */
  few: Counts
  /** As many files as the largest tree has, 1 other mount. */
  manyFiles: Counts
  /** 10 files, 5,000 other mounts. */
  manyMounts: Counts
}

export interface Results {
  machine: Record<string, string>
  /** Files of the tree for which the targets hold, and of the largest one. */
  files: number
  most: number
  trees: Tree[]
  measurements: Measurement[]
  absent: Absent[]
  systemCalls?: SystemCalls
  /** Calls on a node with many mounts. */
  node: NodeMeasurement[]
}

/** A number of a cost. */
export type Quantity = (cost: Cost) => number
export const wall: Quantity = (cost) => cost.wall
export const processor: Quantity = (cost) => cost.user + cost.system

/** Collects the rounds of each measurement. */
export function addCost(all: Measurement[], tree: Tree, name: Case, peer: string, cost: Cost): void {
  const found = find(all, tree, name, peer)
  if (found) found.costs.push(cost)
  else all.push({ tree: nameOf(tree), case: name, peer, costs: [cost] })
}

/** The median over the rounds; undefined if it was not measured. */
export function medianOf(
  all: readonly Measurement[],
  tree: Tree,
  name: Case,
  peer: string,
  quantity: Quantity = wall,
): number | undefined {
  const found = find(all, tree, name, peer)
  return found && median(found.costs.map(quantity))
}

/** Undefined if either was not measured. */
export function ratio(value: number | undefined, to: number | undefined): number | undefined {
  return value === undefined || to === undefined ? undefined : value / to
}

function find(all: readonly Measurement[], tree: Tree, name: Case, peer: string): Measurement | undefined {
  return all.find((one) => one.tree === nameOf(tree) && one.case === name && one.peer === peer)
}
