import { HEAL_ACTIONS, MOUNT_STATES } from '../heal/state.ts'
import { LEFT_REASONS } from '../ownership/walk/report.ts'

/** One metric: what a scraper is told of it, and the values its labels take where these are known beforehand. */
export interface Family {
  type: 'counter' | 'gauge' | 'histogram'
  help: string
  /** Label -> its values, `undefined` where the node decides. All of these series are there from the start. */
  labels: Readonly<Record<string, readonly string[] | undefined>>
}

const CALLS = ['mount', 'unmount', 'apply', 'restore', 'heal', 'gc'] as const
const WALKS = ['mount', 'unmount', 'apply', 'restore'] as const

/** In the order of the page. Units are base units, and in the name (Prometheus' conventions). */
export const FAMILIES = {
  modekeep_info: { type: 'gauge', help: 'Always 1: the version of modekeep.', labels: { version: undefined } },
  modekeep_mounts: {
    type: 'gauge',
    help: 'Volumes on record as mounted, by kind, how their group is given, and their state.',
    labels: { type: undefined, ownership: undefined, state: undefined },
  },
  modekeep_daemons: {
    type: 'gauge',
    help: 'FUSE daemons that serve volumes.',
    labels: { state: ['alive', 'stopped', 'dead'] },
  },
  modekeep_walks_running: {
    type: 'gauge',
    help: 'Walks, restores and mappings of volumes that are under way.',
    labels: {},
  },
  modekeep_restores_pending: {
    type: 'gauge',
    help: 'Volumes with a pending restore: still mounted, or overdue.',
    labels: { state: ['mounted', 'overdue'] },
  },
  modekeep_calls_total: {
    type: 'counter',
    help: 'Calls that ended, by verb and outcome.',
    labels: { verb: CALLS, outcome: ['success', 'refused', 'failed'] },
  },
  modekeep_call_duration_seconds: {
    type: 'histogram',
    help: 'How long calls took, without the start of the process.',
    labels: { verb: CALLS },
  },
  modekeep_walks_total: { type: 'counter', help: 'Walks and restores that ended.', labels: { verb: WALKS } },
  modekeep_inodes_visited_total: {
    type: 'counter',
    help: 'Inodes that walks and restores looked at.',
    labels: { verb: WALKS },
  },
  modekeep_inodes_changed_total: {
    type: 'counter',
    help: 'Inodes that walks changed and restores put back.',
    labels: { verb: WALKS },
  },
  modekeep_inodes_left_total: {
    type: 'counter',
    help: 'Inodes that walks and restores left as they were, by reason.',
    labels: { reason: LEFT_REASONS },
  },
  modekeep_heals_total: {
    type: 'counter',
    help: 'Mounts that heal found not healthy, by their state and by what it did.',
    labels: { state: MOUNT_STATES.filter((state) => state !== 'healthy' && state !== 'busy'), action: HEAL_ACTIONS },
  },
  modekeep_sub_path_heals_total: {
    type: 'counter',
    help: 'What heal did about subPath mounts of kubelet whose source was deleted.',
    labels: { action: ['replaced', 'none'] },
  },
  modekeep_warnings_total: { type: 'counter', help: 'Warnings in the log.', labels: { verb: CALLS } },
  modekeep_log_gaps_total: {
    type: 'counter',
    help: 'Times that the log had been rotated away or emptied before it was read: calls are missing from the counters.',
    labels: {},
  },
  modekeep_calls_logged: {
    type: 'gauge',
    help: '1 where logLevel lets successful calls into the log, from which the counters are made; else 0.',
    labels: {},
  },
} as const satisfies Record<string, Family>

export type FamilyName = keyof typeof FAMILIES

/** Seconds. From a repeated mount to the walk of a volume with millions of files. */
export const BUCKETS = [0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000] as const
