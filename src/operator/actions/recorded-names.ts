import { listMountRecords } from '../../store/mount-record.ts'
import type { Store } from '../../store/places.ts'
import { listRecordedVolumes } from './target.ts'

/** What a shell may be offered. */
export type RecordedNameKind = 'namespaces' | 'pods' | 'mounts' | 'volumes'

/**
 * The names that are on record, for a shell's completion: only records are read, no mount or volume is looked at. A name
 * with what a shell could take for its own is left out.
 */
export function listRecordedNames(store: Store, kind: RecordedNameKind): string[] {
  return readRecordedNames(store, kind)
    .filter((name) => /^[\w@%+:,./~-]+$/.test(name))
    .sort()
}

function readRecordedNames(store: Store, kind: RecordedNameKind): string[] {
  if (kind === 'volumes') return listRecordedVolumes(store)
  const mounts = listMountRecords(store)
  if (kind === 'mounts') return mounts.map(({ directory }) => directory)
  const pods = mounts.flatMap(({ pod }) => pod || [])
  return [...new Set(kind === 'pods' ? pods : pods.map((pod) => pod.replace(/\/.*/, '')))]
}
