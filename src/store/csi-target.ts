import { locateMountRecords, type Store, TARGET_FILE } from './record-directories.ts'

/** `made`: publish created the target directory; `found`: it existed before. */
export type TargetOrigin = 'made' | 'found'

/**
 * Records the origin of a target directory before publish creates it, because unpublish removes only a directory that
 * publish created. The file is removed with the mount's record. Call it under the mount's lock.
 */
export function writeTargetOrigin(store: Store, directory: string, origin: TargetOrigin): void {
  const { path } = locateMountRecords(store, directory)
  // A crash of the node may lose the file: then unpublish keeps the directory, and kubelet removes it.
  store.host.files.replaceUntilBoot(`${path}/${TARGET_FILE}`, `${origin}\n`)
}

/** Returns undefined if no origin is recorded. Earlier versions recorded none. */
export function readTargetOrigin(store: Store, directory: string): TargetOrigin | undefined {
  const text = store.host.files.read(`${locateMountRecords(store, directory).path}/${TARGET_FILE}`)?.trim()
  return text === 'made' || text === 'found' ? text : undefined
}
