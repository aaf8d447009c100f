import { mountPlace, type Store, TARGET_FILE } from './places.ts'

/** Whether publish made the target directory, or found it. */
export type TargetOrigin = 'made' | 'found'

/**
 * Notes where a target directory comes from, before publish makes it: unpublish removes only what publish made. The file goes with
 * the mount's record. Call it under the mount's lock.
 */
export function writeTargetOrigin(store: Store, directory: string, origin: TargetOrigin): void {
  const { path } = mountPlace(store, directory)
  // After a crash of the node an unknown directory stays, and kubelet removes it.
  store.host.files.replaceUntilBoot(`${path}/${TARGET_FILE}`, `${origin}\n`)
}

/** Undefined where publish noted nothing, as in earlier versions. */
export function readTargetOrigin(store: Store, directory: string): TargetOrigin | undefined {
  const text = store.host.files.read(`${mountPlace(store, directory).path}/${TARGET_FILE}`)?.trim()
  return text === 'made' || text === 'found' ? text : undefined
}
