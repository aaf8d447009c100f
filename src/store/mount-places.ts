import type { Host } from '../host/host.ts'
import { LOCK_FILE, mountStateDirectory, mountsDirectory, RECORD_FILE } from './paths.ts'

/** A directory below `mounts` that is for a mount directory. */
export interface MountPlace {
  path: string
  /**
   * What its name stands for. Where a call died while it made a place with a longer name, that is cut short, or '' where it
   * is cut within a letter.
   */
  directory: string
  hasRecord: boolean
  /** Nothing is there but what a call leaves that dies. */
  isLeft: boolean
}

/** All places, whether or not their record can be understood. */
export function listMountPlaces(host: Host, stateDir: string): MountPlace[] {
  const found: MountPlace[] = []
  const look = (path: string, encoded: string) => {
    const names = host.files.list(path)
    const longer = names.filter((name) => name.startsWith('+'))
    for (const name of longer) look(`${path}/${name}`, encoded + name.slice(1))
    const hasRecord = names.includes(RECORD_FILE)
    if (longer.length > 0 && !hasRecord) return
    const named = decoded(encoded)
    const directory = named !== undefined && mountStateDirectory(stateDir, named) === path ? named : ''
    found.push({ path, directory, hasRecord, isLeft: names.every(isLeft) })
  }
  const top = mountsDirectory(stateDir)
  for (const name of host.files.list(top)) if (name.startsWith('%')) look(`${top}/${name}`, name)
  return found
}

/** @param path a place's */
export function isLeftPlace(host: Host, path: string): boolean {
  return host.files.list(path).every(isLeft)
}

// A record is written by way of a new file.
function isLeft(name: string): boolean {
  return name === LOCK_FILE || name === `${RECORD_FILE}.new`
}

function decoded(encoded: string): string | undefined {
  try {
    return decodeURIComponent(encoded)
  } catch {
    return undefined
  }
}
