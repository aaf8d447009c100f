import { type FSWatcher, statSync, watch } from 'node:fs'
import { errorCode } from '../host.ts'
import { deferCloseFd, openCached } from './open.ts'

/** Reports created, removed and renamed entries of directories: inotify(7). */
export class DirectoryWatches {
  readonly #changed: () => void
  readonly #failed: (error: Error) => void
  /** The keys contain path and inode, so a recreated directory gets a new watch. */
  #watches = new Map<string, FSWatcher>()
  #told = new Set<string>()

  readonly #mayWait: boolean

  /**
   * @param failed called once for each errno that prevents watching, such as ENOSPC and EMFILE at a limit
   * @param mayWait if false, a directory is skipped if its lookup could wait for a locked directory
   */
  constructor(changed: () => void, failed: (error: Error) => void, mayWait = true) {
    this.#changed = changed
    this.#failed = failed
    this.#mayWait = mayWait
  }

  /**
   * Watches exactly these directories and skips missing ones.
   * @returns true if a directory is new: it may have changed just before
   */
  follow(directories: readonly string[]): boolean {
    using handles = new DisposableStack()
    const pathByKey = new Map<string, string>()
    for (const path of directories) {
      const openedPath = this.#tried(() => (this.#mayWait ? path : openWithoutWaiting(path, handles)))
      const key = openedPath === undefined ? undefined : this.#tried(() => readDirectoryKey(openedPath, path))
      if (openedPath !== undefined && key !== undefined) pathByKey.set(key, openedPath)
    }
    for (const [key, watcher] of this.#watches) {
      if (pathByKey.has(key)) continue
      watcher.close()
      this.#watches.delete(key)
    }
    let isNew = false
    for (const [key, path] of pathByKey) {
      if (this.#watches.has(key)) continue
      const watcher = this.#tried(() => watch(path, { persistent: false }, this.#changed))
      if (watcher === undefined) continue
      watcher.on('error', (error) => this.#tell(error))
      this.#watches.set(key, watcher)
      isNew = true
    }
    return isNew
  }

  close(): void {
    this.follow([])
  }

  #tried<T>(call: () => T): T | undefined {
    try {
      return call()
    } catch (error) {
      this.#tell(error as Error)
      return undefined
    }
  }

  #tell(error: Error): void {
    const code = errorCode(error) ?? ''
    if (IGNORED_CODES.has(code) || this.#told.has(code)) return
    this.#told.add(code)
    this.#failed(error)
  }
}

const IGNORED_CODES: ReadonlySet<string> = new Set(['ENOENT', 'ENOTDIR', 'EAGAIN'])

/** @returns a path that leads to the directory until `held` is disposed of */
function openWithoutWaiting(path: string, handles: DisposableStack): string {
  const handle = openCached(path)
  handles.use(deferCloseFd(handle))
  return `/proc/self/fd/${handle}`
}

function readDirectoryKey(openedPath: string, path: string): string {
  const { dev, ino, birthtimeNs } = statSync(openedPath, { bigint: true })
  return `${dev}:${ino}:${birthtimeNs}:${path}`
}
