import * as fs from 'node:fs'
import { dirname } from 'node:path'
import { look } from './sockets.ts'

/** Tells of changes in a directory, and of its coming when it is not there. Follows the path, not the inode it once was. */
export class DirectoryWatch {
  readonly #directory: string
  readonly #onChange: () => void
  #watching: { inode: bigint; watcher: fs.FSWatcher } | undefined

  constructor(directory: string, onChange: () => void) {
    this.#directory = directory
    this.#onChange = onChange
  }

  /** To be called before each look at the directory, so that no change falls between the two. */
  arm(): void {
    for (const path of [this.#directory, dirname(this.#directory)]) {
      const inode = look(path)?.ino
      if (inode === undefined) continue
      if (this.#watching?.inode === inode) return
      this.close()
      try {
        const watcher = fs.watch(path, this.#onChange)
        // Without inotify the regular look remains.
        watcher.on('error', () => this.close())
        this.#watching = { inode, watcher }
        return
      } catch {}
    }
  }

  close(): void {
    this.#watching?.watcher.close()
    this.#watching = undefined
  }
}
