import { DIRECTORY, type Host, type Stat } from '../host/host.ts'
import { layersAt, type MountRow, parseMountinfo } from './mountinfo.ts'

/** The mounts that lie on a path now, the lowest first. It reads the whole mount table. */
export function layersAtPath(host: Host, path: string): MountRow[] {
  return layersAt(parseMountinfo(host.mounts.table()), path)
}

/** No volume has a file system without room for a single inode. */
export const GUARD_OPTIONS = ['ro', 'mode=0000', 'nr_inodes=1', 'size=4k']

const PERMISSIONS = 0o7777

/** Whether the topmost mount at a path is a guard: then no volume is mounted there. */
export function isGuard(host: Host, path: string, { mode, mountRoot }: Stat): boolean {
  // The mode is a hint that costs nothing; long tables are read for few.
  if (!mountRoot || (mode & PERMISSIONS) !== 0 || (mode & ~PERMISSIONS) !== DIRECTORY) return false
  const top = layersAtPath(host, path).at(-1)
  return top !== undefined && isGuardRow(top)
}

export function hasGuard(host: Host, path: string): boolean {
  return layersAtPath(host, path).some(isGuardRow)
}

function isGuardRow({ fsType, source, superOptions }: MountRow): boolean {
  const isEmpty = ['ro', 'nr_inodes=1'].every((option) => superOptions.includes(option))
  return fsType === 'tmpfs' && source === 'modekeep' && isEmpty
}
