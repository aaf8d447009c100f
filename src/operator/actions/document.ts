import type { GarbageItem } from '../../heal/garbage-item.ts'
import type { Finding } from '../../heal/state.ts'
import type { SubPathFinding } from '../../heal/sub-paths.ts'
import type { Ownership } from '../../ownership/inode/policy.ts'
import type { WalkReport } from '../../ownership/walk/report.ts'
import type { InodeType } from './inode-type.ts'

/** What an operator's verb found or did. `--json` prints it with an apiVersion and a kind for its verb. Modes are decimal numbers of permission bits. */
export type Document =
  | PlanDocument
  | ApplyDocument
  | RestoreDocument
  | StatusDocument
  | HealDocument
  | DoctorDocument
  | GcDocument

/** Of every shape that docs/commands.md has. It changes where a program that reads one has to change. */
export const API_VERSION = 'modekeep/v1'

interface About {
  directory: string
  /** Names the volume across reboots and paths. */
  volume: string
}

interface Asked extends About {
  group: number
  groupAccess: 'keep' | 'grant'
  policy: 'OnRootMismatch' | 'Always'
}

export interface PlanDocument extends Asked {
  verb: 'plan'
  /** Whether `apply` would walk; where it would not, all counts of `report` are 0. */
  walks: boolean
  /** Why `apply` would be refused now. */
  refusal: string | null
  /** A walk or a restore of the volume is under way: what is counted changes meanwhile. */
  busy: boolean
  /** How far that is, when it takes more than a second. */
  underWay: { visited: number; changed: number } | null
  /** What is on record of the last walk. */
  recorded: { group: number; groupAccess: 'keep' | 'grant'; complete: boolean; restorePending: boolean } | null
  /** `changed` counts what `apply` would change. */
  report: WalkReport
  /** Inodes that would gain permission bits. */
  widened: number
  kubelet: KubeletCounts
  /** The first inodes that would be changed. */
  differences: Difference[]
}

/** Kubelet's own walk of the same tree: `touched` gets a chown and a chmod, right or not, so that ctime moves. */
export interface KubeletCounts {
  walks: boolean
  touched: number
  changed: number
  widened: number
}

export interface Difference {
  /** From the directory; bytes that are no UTF-8 read as U+FFFD. */
  path: string
  type: InodeType
  uid: number
  before: Ownership
  after: Ownership
  /** Null where kubelet has no rule: for a restore. */
  kubelet: Ownership | null
}

export interface ApplyDocument extends Asked {
  verb: 'apply'
  /** False: the root has the group already and the policy is OnRootMismatch. */
  walked: boolean
  report: WalkReport
}

export interface RestoreDocument extends About {
  verb: 'restore'
  isDry: boolean
  isForced: boolean
  outcome: 'nothing recorded' | 'restored' | 'unfinished' | 'would restore'
  /** With isDry: why it would be refused now. */
  refusal: string | null
  /** `changed` counts what was, or would be, put back, `alreadyRight` what was as recorded. */
  report: WalkReport
  /** With isDry: the first inodes that would be put back. */
  differences: Difference[]
}

export interface StatusDocument {
  verb: 'status'
  mounts: MountStatus[]
  volumes: VolumeStatus[]
  /** Mount directories whose records are damaged, or of another version's format: no call removes those. */
  unreadable: { directory: string; fault: string }[]
}

/** A volume that modekeep keeps records of. */
export interface VolumeStatus {
  volume: string
  /** Where it was when it was walked; '' where its record cannot be read. */
  source: string
  /** What a walk has made of it, null where that is not known. */
  group: number | null
  groupAccess: 'keep' | 'grant' | null
  /** False: a walk or a restore of it was not finished. */
  complete: boolean
  /** Its last unmount, or `restore`, is to put it back. */
  restorePending: boolean
  /** Recorded mounts of it. */
  mounts: number
  /** Why its record or its journal cannot be used, null where both can. */
  fault: string | null
  walk: WalkStatus | null
}

/** A walk or a restore that is under way. */
export interface WalkStatus {
  /** Null in its first second, when no counts are written yet. */
  pid: number | null
  visited: number
  changed: number
}

export interface MountStatus {
  directory: string
  /** Its volume's identity, '' where it goes with the mount. */
  volume: string
  /** Namespace and name, '' where kubelet told none. */
  pod: string
  /** With a subPath, where that lay when it was mounted; '' for a tmpfs. */
  source: string
  fsType: string
  readOnly: boolean
  /** The pod's fsGroup. */
  group: number | null
  /** How it was given, and why so. */
  ownership: 'none' | 'walk' | 'idmap' | 'option'
  why: string
  /** ISO 8601. */
  since: string | null
  /** What `heal` would find, and why. */
  state: Finding['state']
  reason: string
  /** A walk or a restore of its volume that is under way. */
  walk: WalkStatus | null
  /** The process that serves it, null where none does. Whether it answers is not asked. */
  daemon: { pid: number | null; state: 'alive' | 'stopped' | 'dead' } | null
}

export interface HealDocument {
  verb: 'heal'
  isDry: boolean
  /** modekeep's own mounts. */
  mounts: Finding[]
  /** Kubelet's, where asked for. */
  subPaths: SubPathFinding[]
}

export interface GcDocument {
  verb: 'gc'
  isDry: boolean
  items: GarbageItem[]
}

export interface DoctorDocument {
  verb: 'doctor'
  /** How many of each. */
  ok: number
  warnings: number
  faults: number
  findings: CheckFinding[]
}

export interface CheckFinding {
  area: 'kernel' | 'system calls' | 'helpers' | 'kubelet' | 'configuration' | 'state' | 'mounts' | 'volumes'
  level: 'ok' | 'warning' | 'fault'
  text: string
  /** What to do; '' where all is well. */
  remedy: string
}
