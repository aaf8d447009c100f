import { type FSWatcher, statSync, watch } from 'node:fs'
import { errorCode } from '../host.ts'
import { deferCloseFd, openCached } from './open.ts'

/** Calls back when entries of directories come, go or are renamed: inotify(7). */
export class DirectoryWatches {
  readonly #changed: () => void
  readonly #failed: (error: Error) => void
  /** By path and inode: a directory that was made anew is watched anew. */
  #watches = new Map<string, FSWatcher>()
  #told = new Set<string>()

  readonly #mayWait: boolean

  /**
   * @param failed is told once of each errno that hinders watching, such as ENOSPC and EMFILE at a limit
   * @param mayWait false: a directory whose lookup could wait for a locked directory is passed over
   */
  constructor(changed: () => void, failed: (error: Error) => void, mayWait = true) {
    this.#changed = changed
    this.#failed = failed
    this.#mayWait = mayWait
  }

  /**
   * Watches these directories and no others. What does not exist is passed over.
   * @returns whether one is new: it may have changed just before
   */
  follow(directories: readonly string[]): boolean {
    using held = new DisposableStack()
    const wanted = new Map<string, string>()
    for (const path of directories) {
      const opened = this.#tried(() => (this.#mayWait ? path : openWithoutWaiting(path, held)))
      const key = opened === undefined ? undefined : this.#tried(() => readDirectoryKey(opened, path))
      if (opened !== undefined && key !== undefined) wanted.set(key, opened)
    }
    for (const [key, watcher] of this.#watches) {
      if (wanted.has(key)) continue
      watcher.close()
      this.#watches.delete(key)
    }
    let isNew = false
    for (const [key, path] of wanted) {
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

  #tried<T>(work: () => T): T | undefined {
    try {
      return work()
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

/** @returns a path that leads to the directory as long as `held` holds it */
function openWithoutWaiting(path: string, held: DisposableStack): string {
  const handle = openCached(path)
  held.use(deferCloseFd(handle))
  return `/proc/self/fd/${handle}`
}

function readDirectoryKey(opened: string, path: string): string {
  const { dev, ino, birthtimeNs } = statSync(opened, { bigint: true })
  return `${dev}:${ino}:${birthtimeNs}:${path}`
}
