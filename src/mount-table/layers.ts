import { DIRECTORY, type Host, type Stat } from '../host/host.ts'
import { type MountRow, parseMountinfo, selectLayers } from './mountinfo.ts'

/** The mounts that lie on a path now, the lowest first. It reads the whole mount table. */
export function readLayers(host: Host, path: string): MountRow[] {
  return selectLayers(parseMountinfo(host.mounts.table()), path)
}

/** No volume has a file system without room for a single inode. */
export const GUARD_OPTIONS = ['ro', 'mode=0000', 'nr_inodes=1', 'size=4k']

/** Whether the topmost mount at a path is a guard: then no volume is mounted there. */
export function isGuard(host: Host, path: string, { mode, mountRoot }: Stat): boolean {
  // No permissions at all: a hint that costs nothing, as long tables are to be read for few.
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
