import { DIRECTORY, type Host, type Stat } from '../host/host.ts'
import { type MountRow, parseMountinfo, selectLayers } from './mountinfo.ts'

/** Returns the mounts at a path, the lowest first. Reads the complete mount table. */
export function readLayers(host: Host, path: string): MountRow[] {
  return selectLayers(parseMountinfo(host.mounts.table()), path)
}

/** A file system without space for a single inode is a guard: no volume has one. */
export const GUARD_OPTIONS = ['ro', 'mode=0000', 'nr_inodes=1', 'size=4k']

/** Checks whether the topmost mount at a path is a guard, which means that no volume is mounted there. */
export function isGuard(host: Host, path: string, { mode, mountRoot }: Stat): boolean {
  // A guard's root has no permissions. This cheap check avoids reading a long mount table for most mounts.
  const isCandidate = mountRoot && mode === DIRECTORY
  return isCandidate && readLayers(host, path).slice(-1).some(isGuardRow)
}

export function hasGuard(host: Host, path: string): boolean {
  return readLayers(host, path).some(isGuardRow)
}

function isGuardRow({ fsType, source, superOptions }: MountRow): boolean {
  const isEmpty = ['ro', 'nr_inodes=1'].every((option) => superOptions.includes(option))
  return fsType === 'tmpfs' && source === 'modekeep' && isEmpty
}
