import { MAP_ENTRIES } from './map.ts'
import { CSI_ENTRIES, DIRECTORY_ENTRIES, NODE_ENTRIES, RECORD_ENTRIES } from './node.ts'
import { OPTION_ENTRIES, SOURCE_ENTRIES, SUB_PATH_ENTRIES } from './pod.ts'
import { DISK_ENTRIES, GROUP_ENTRIES, SERVER_ENTRIES } from './volume.ts'

/** The meaning of a code for an operator. Commands and values have Markdown's backticks. */
export interface FaultEntry {
  readonly meaning: string
  readonly cause?: string
  readonly remedy: string
  /** Page of docs/ that describes the topic, with an anchor. */
  readonly see?: string
}

/** The entries of docs/troubleshooting.md and of `modekeep explain`, by section. Calls of kubelet load only the type. */
export const ENTRY_SECTIONS = {
  "A pod's options": OPTION_ENTRIES,
  'The source': SOURCE_ENTRIES,
  subPath: SUB_PATH_ENTRIES,
  'The group': GROUP_ENTRIES,
  'Disks and images': DISK_ENTRIES,
  'Servers, daemons and their programs': SERVER_ENTRIES,
  Records: RECORD_ENTRIES,
  'The mount directory': DIRECTORY_ENTRIES,
  CSI: CSI_ENTRIES,
  'Volumes of other drivers': MAP_ENTRIES,
  'The node and its commands': NODE_ENTRIES,
} satisfies Record<string, Record<string, FaultEntry>>

type KeysOf<Sections> = Sections extends unknown ? keyof Sections : never

/** A fault can only have a code that an entry describes. */
export type FaultCode = KeysOf<(typeof ENTRY_SECTIONS)[keyof typeof ENTRY_SECTIONS]>

export const FAULT_ENTRIES: ReadonlyMap<string, FaultEntry & { section: string }> = new Map(
  Object.entries(ENTRY_SECTIONS).flatMap(([section, entries]) =>
    Object.entries<FaultEntry>(entries).map(([code, entry]) => [code, { ...entry, section }] as const),
  ),
)
