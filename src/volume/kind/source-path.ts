import {
  DIRECTORY,
  errorCode,
  FILE_TYPE,
  type Handle,
  type Host,
  isDirectory,
  REGULAR,
  type Stat,
} from '../../host/host.ts'
import { quoted, Refusal } from '../../refusal/refusal.ts'
import { allowedFaults, isBelow } from '../../request/allowed-sources.ts'
import { type NodeConfig, PRIVATE } from '../../request/defaults.ts'
import type { KindRequest } from '../../request/request.ts'
import { type Source, sourcePath, sourceText } from '../../request/source.ts'

/** @param what kinds of things it may name */
export function sourceFaults(request: KindRequest, config: NodeConfig, what = 'directory'): string[] {
  const source = sourceText(request.source)
  if (source === undefined) return [`option "source" is missing: name the ${what} of the node to mount`]
  const faults = pathFaults(source)
  if (faults.length > 0) return faults
  if (holdsOwnRecords(source, config)) {
    return [
      `option "source" is ${quoted(source)}: it holds modekeep's own records, which no pod may see; name another directory`,
    ]
  }
  return allowedFaults(request.source, request.fsType, config)
}

/** Faults of a path as it is written. */
export function pathFaults(source: string): string[] {
  const parts = source.split('/').slice(1)
  const isNormal = source.startsWith('/') && !source.includes('\0')
  if (isNormal && parts.every((part) => part !== '' && part !== '.' && part !== '..')) return []
  return [`option "source" is ${quoted(source)}: write an absolute path without "..", ".", "//" or a trailing slash`]
}

/** Whether a directory is, has or is in one that holds modekeep's records. */
export function holdsOwnRecords(path: string, { stateDir }: NodeConfig): boolean {
  const places = Object.values(PRIVATE).map((name) => `${stateDir}/${name}`)
  return places.some((place) => isBelow(path, place) || isBelow(place, path))
}

/**
 * Opens a directory of the node by a path that holds no link, so that its text, which was compared with allowedSources,
 * is its real location.
 * @param what what a message calls it
 * @throws {Refusal} naming the source and what to do
 */
export function openNodeDirectory(host: Host, source: string, what = 'source'): { handle: Handle; stat: Stat } {
  const handle = openLinkFree(host, source, what)
  const stat = host.inodes.stat(handle)
  if (isDirectory(stat)) return { handle, stat }
  host.inodes.close(handle)
  throw new Refusal(`${what} ${quoted(source)} is not a directory: name one`)
}

/** The same for what may be a file: an image. A FIFO, a socket or a device is refused. */
export function openNodeFile(host: Host, source: string): { handle: Handle; stat: Stat } {
  const handle = openLinkFree(host, source, 'source')
  const stat = host.inodes.stat(handle)
  if ([DIRECTORY, REGULAR].includes(stat.mode & FILE_TYPE)) return { handle, stat }
  host.inodes.close(handle)
  throw new Refusal(`source ${quoted(source)} is neither a directory nor a file: name one`)
}

/** @throws {Refusal} naming the source; `mend` is what to do where there is none */
export function openLinkFree(host: Host, source: string, what: string, mend = 'create the directory'): Handle {
  try {
    return host.inodes.openLinkFree(source)
  } catch (error) {
    switch (errorCode(error)) {
      case 'ENOENT':
        throw new Refusal(`${what} ${quoted(source)} does not exist on this node: ${mend}, or correct the name`)
      case 'ELOOP':
        throw new Refusal(
          `${what} ${quoted(source)} has a symbolic link in its path, which could lead anywhere: write the real path`,
        )
      case 'ENOTDIR':
        throw new Refusal(`${what} ${quoted(source)} leads through something that is not a directory: correct the name`)
      default:
        throw error
    }
  }
}

/** The path of a source that its kind has found to be one of the node. */
export function pathOf(source: Source): string {
  const path = sourcePath(source)
  if (path === undefined) throw new Error(`source ${sourceText(source)} is no path of the node`)
  return path
}
