import { type FSWatcher, statSync, watch } from 'node:fs'
import { errorCode } from '../host.ts'

/** Calls back when entries of directories come, go or are renamed: inotify(7). */
export class DirectoryWatches {
  readonly #changed: () => void
  readonly #failed: (error: Error) => void
  /** By path and inode: a directory that was made anew is watched anew. */
  #watches = new Map<string, FSWatcher>()
  #told = new Set<string>()

  /** @param failed is told once of each errno that hinders watching, such as ENOSPC and EMFILE at a limit */
  constructor(changed: () => void, failed: (error: Error) => void) {
    this.#changed = changed
    this.#failed = failed
  }

  /**
   * Watches these directories and no others. What does not exist is passed over.
   * @returns whether one is new: it may have changed just before
   */
  follow(directories: readonly string[]): boolean {
    const wanted = new Map(directories.flatMap((path) => this.#tried(() => [[keyOf(path), path] as const]) ?? []))
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
    if (code === 'ENOENT' || code === 'ENOTDIR' || this.#told.has(code)) return
    this.#told.add(code)
    this.#failed(error)
  }
}

function keyOf(path: string): string {
  const { dev, ino, birthtimeNs } = statSync(path, { bigint: true })
  return `${dev}:${ino}:${birthtimeNs}:${path}`
}
