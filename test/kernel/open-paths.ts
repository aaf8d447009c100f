import { readdirSync } from 'node:fs'
import { getErrno } from '../../src/kernel/host.ts'
import { linuxHost } from '../../src/kernel/linux/index.ts'
import { identity, outcomeOf } from './path/ways.ts'

/** Opens each path without following links. Returns the inode or the error's code. */
export function openPaths(paths: readonly string[]): string[] {
  const { inodes } = linuxHost
  return paths.map((path) => {
    try {
      const handle = inodes.openLinkFree(path)
      const found = identity(inodes, handle)
      inodes.close(handle)
      return found
    } catch (error) {
      return getErrno(error) ?? String(error)
    }
  })
}

/** Opens each subPath of a source. Returns the inode or the error's code. */
export function openParts(source: string, subPaths: readonly string[]): string[] {
  const root = linuxHost.inodes.openLinkFree(source)
  const found = subPaths.map((subPath) => outcomeOf(linuxHost.inodes, root, subPath))
  linuxHost.inodes.close(root)
  return found
}

/** Run as a program, it prints both as JSON, and the number of handles that are still open. */
if (process.argv[1] === import.meta.filename) {
  const [paths = [], source = '', subPaths = []] = JSON.parse(process.argv[2] ?? '')
  const handles = () => readdirSync('/proc/self/fd').length
  const before = handles()
  const results = [openPaths(paths), openParts(source, subPaths)]
  process.stdout.write(JSON.stringify({ results, kept: handles() - before }))
}
