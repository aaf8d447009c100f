import type { Host } from '../host/host.ts'
import { LOCK_FILE, mountStateDirectory, mountsDirectory, RECORD_FILE } from './paths.ts'

/** A mount directory that has a place in the state directory. */
export interface MountPlace {
  directory: string
  hasRecord: boolean
  /** Nothing is there but what a call leaves that dies. */
  isLeft: boolean
}

/** All places, whether or not their record can be understood. What is no place's name is passed over. */
export function listMountPlaces(host: Host, stateDir: string): MountPlace[] {
  const found: MountPlace[] = []
  const look = (place: string, encoded: string) => {
    const names = host.files.list(place)
    const longer = names.filter((name) => name.startsWith('+'))
    for (const name of longer) look(`${place}/${name}`, encoded + name.slice(1))
    const directory = decoded(encoded)
    const hasRecord = names.includes(RECORD_FILE)
    if (directory === undefined || mountStateDirectory(stateDir, directory) !== place) return
    if (longer.length === 0 || hasRecord) found.push({ directory, hasRecord, isLeft: names.every(isLeft) })
  }
  const top = mountsDirectory(stateDir)
  for (const name of host.files.list(top)) if (name.startsWith('%')) look(`${top}/${name}`, name)
  return found
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
