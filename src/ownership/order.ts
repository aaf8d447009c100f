import type { Handle, Inodes } from '../host/host.ts'
import type { OwnOrder } from './inode/policy.ts'
import type { Journal } from './journal/journal.ts'
import type { WalkReport } from './walk/report.ts'
import { own, prune, restore, type WalkOptions } from './walks.ts'

/** What is to be done to a volume; all of it can be written as JSON. */
export type WalkOrder =
  | { do: 'own'; order: OwnOrder }
  | { do: 'restore'; isForced: boolean; toBaseline?: boolean }
  | { do: 'prune' }

/** What was done. */
export interface Walked {
  report: WalkReport
  /** Of a restore: the journal still holds something. */
  isStillRecorded: boolean
  /** The journal has forgotten the inodes that are gone. */
  isPruned?: boolean
}

/** Carries out an order. @throws as `own`, `restore` and `prune` do */
export async function walkBy(
  order: WalkOrder,
  inodes: Inodes,
  tree: Handle,
  journal: Journal,
  options: WalkOptions,
): Promise<Walked> {
  if (order.do === 'own') {
    const report = await own(inodes, tree, order.order, journal, options)
    return { report, isStillRecorded: true }
  }
  if (order.do === 'prune') return { ...(await prune(inodes, tree, journal, options)), isStillRecorded: true }
  const report = await restore(inodes, tree, journal, options, order.isForced, order.toBaseline)
  return { report, isStillRecorded: !journal.isEmpty() }
}
