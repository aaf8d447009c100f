import { MAP_FAULT_ENTRIES } from './map.ts'
import { CSI_FAULT_ENTRIES, DIRECTORY_FAULT_ENTRIES, NODE_FAULT_ENTRIES, RECORD_FAULT_ENTRIES } from './node.ts'
import { OPTION_FAULT_ENTRIES, SOURCE_FAULT_ENTRIES, SUB_PATH_FAULT_ENTRIES } from './pod.ts'
import { DISK_FAULT_ENTRIES, GROUP_FAULT_ENTRIES, SERVER_FAULT_ENTRIES } from './volume.ts'

/** The meaning of a code for an operator. Commands and values have Markdown's backticks. */
export interface FaultEntry {
  readonly meaning: string
  readonly cause?: string
  readonly remedy: string
  /** Page of docs/ that describes the topic, with an anchor. */
  readonly see?: string
}

/** The entries of docs/troubleshooting.md and of `modekeep explain`, by section. Calls of kubelet load only the type. */
export const FAULT_ENTRY_SECTIONS = {
  "A pod's options": OPTION_FAULT_ENTRIES,
  'The source': SOURCE_FAULT_ENTRIES,
  subPath: SUB_PATH_FAULT_ENTRIES,
  'The group': GROUP_FAULT_ENTRIES,
  'Disks and images': DISK_FAULT_ENTRIES,
  'Servers, daemons and their programs': SERVER_FAULT_ENTRIES,
  Records: RECORD_FAULT_ENTRIES,
  'The mount directory': DIRECTORY_FAULT_ENTRIES,
  CSI: CSI_FAULT_ENTRIES,
  'Volumes of other drivers': MAP_FAULT_ENTRIES,
  'The node and its commands': NODE_FAULT_ENTRIES,
} satisfies Record<string, Record<string, FaultEntry>>

type KeysOfSections<Sections> = Sections extends unknown ? keyof Sections : never

/** A fault can only have a code that an entry describes. */
export type FaultCode = KeysOfSections<(typeof FAULT_ENTRY_SECTIONS)[keyof typeof FAULT_ENTRY_SECTIONS]>

export const FAULT_ENTRIES: ReadonlyMap<string, FaultEntry & { section: string }> = new Map(
  Object.entries(FAULT_ENTRY_SECTIONS).flatMap(([section, entries]) =>
    Object.entries<FaultEntry>(entries).map(([code, entry]) => [code, { ...entry, section }] as const),
  ),
)
