import { listMountRecords } from '../../store/mount-record.ts'
import type { Store } from '../../store/record-directories.ts'
import { listRecordedVolumes } from './target.ts'

/** Kinds of names that a shell can complete. */
export type RecordedNameKind = 'namespaces' | 'pods' | 'mounts' | 'volumes'

/**
 * Lists recorded names for a shell's completion. Only records are read; no mount or volume is inspected. A name with a
 * character that a shell could interpret is omitted.
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
