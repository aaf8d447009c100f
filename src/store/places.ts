import type { Host } from '../host/host.ts'
import { mountStateDirectory, mountsDirectory, RECORD_FILE, TRANSIENT_FILES, volumeStateDirectory } from './paths.ts'

/** What the state directory keeps of one mount directory or one volume. Whoever works on that holds the lock in it. */
export interface Place {
  path: string
  /** Its empty parents go with it, up to here. */
  top: string
  /** Whose journal lies there; undefined for a mount directory's. */
  volume?: string
}

export interface MountPlace extends Place {
  /**
   * What its name stands for. Where a call was interrupted while it made a place with a longer name, that is cut short,
   * or '' where it is cut within a letter.
   */
  directory: string
  hasRecord: boolean
}

export function mountPlace(stateDir: string, directory: string): Place {
  return { path: mountStateDirectory(stateDir, directory), top: mountsDirectory(stateDir) }
}

export function volumePlace(stateDir: string, volume: string): Place {
  return { path: volumeStateDirectory(stateDir, volume), top: stateDir, volume }
}

/** All places of mount directories, whether or not their record can be understood. */
export function listMountPlaces(host: Host, stateDir: string): MountPlace[] {
  const found: MountPlace[] = []
  const top = mountsDirectory(stateDir)
  const look = (path: string, encoded: string) => {
    const names = host.files.list(path)
    const own = names.filter(isOwn)
    for (const name of names) if (!isOwn(name)) look(`${path}/${name}`, encoded + name.slice(1))
    if (own.length === 0 && names.length > 0) return
    const named = decoded(encoded)
    const directory = named !== undefined && mountStateDirectory(stateDir, named) === path ? named : ''
    found.push({ path, top, directory, hasRecord: own.includes(RECORD_FILE) })
  }
  for (const name of host.files.list(top)) if (name.startsWith('%')) look(`${top}/${name}`, name)
  return found
}

/**
 * The files of a place that is a leftover of an interrupted call, or of one whose disk failed: nothing is there but what
 * calls make for their own time.
 * @returns undefined where there is anything else
 */
export function leftoverFiles(host: Host, { path }: Place): string[] | undefined {
  const own = host.files.list(path).filter(isOwn)
  return own.every((name) => TRANSIENT_FILES.has(name)) ? own : undefined
}

/** Not the place of a longer mount directory, of which this one's name is the beginning. */
function isOwn(name: string): boolean {
  return !name.startsWith('+')
}

function decoded(encoded: string): string | undefined {
  try {
    return decodeURIComponent(encoded)
  } catch {
    return undefined
  }
}
