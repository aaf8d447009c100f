import * as fs from 'node:fs'
import { dirname } from 'node:path'
import { look } from './sockets.ts'

/** Tells of changes in a directory, and of its coming when it is not there. Follows the path, not the inode it once was. */
export class DirectoryWatch {
  readonly #directory: string
  readonly #onChange: () => void
  #watching: { identity: string; watcher: fs.FSWatcher } | undefined

  constructor(directory: string, onChange: () => void) {
    this.#directory = directory
    this.#onChange = onChange
  }

  /** To be called before each look at the directory, so that no change falls between the two. */
  arm(): void {
    for (const path of [this.#directory, dirname(this.#directory)]) {
      const stat = look(path)
      if (stat === undefined) continue
      // The number alone may be that of a directory which is gone, and its watch with it.
      const identity = `${stat.ino}:${stat.birthtimeNs}`
      if (this.#watching?.identity === identity) return
      this.close()
      try {
        const watcher = fs.watch(path, this.#onChange)
        // Without inotify the regular look remains.
        watcher.on('error', () => this.close())
        this.#watching = { identity, watcher }
        return
      } catch {}
    }
  }

  close(): void {
    this.#watching?.watcher.close()
    this.#watching = undefined
  }
}
