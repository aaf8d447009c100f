import { errorCode, type Host } from '../host/host.ts'
import { type MountPoint, statPoint, targetOf } from '../mount-table/mount-point.ts'
import { quoted, Refusal } from '../refusal/refusal.ts'

// As kubelet makes them: volumes (pkg/volume/flexvolume/util.go), and files for subPaths (pkg/volume/util/subpath).
const DIRECTORY_MODE = 0o750
const FILE_MODE = 0o640

/**
 * Makes the point an empty directory or an empty file. Only what is empty, or missing, gives way; a death in between
 * leaves it missing, which kubelet takes for unmounted and makes anew.
 * @throws {Refusal} for what nobody made to mount on
 */
export function setTarget(host: Host, point: MountPoint, wanted: 'directory' | 'file'): void {
  const { parent, name } = point
  const stat = statPoint(host, point)
  const there = stat === 'broken' ? 'directory' : targetOf(point, stat)
  if (there === wanted) return
  if (there === 'file') host.inodes.removeFile(parent, name)
  if (there === 'directory') removeEmptyDirectory(host, point)
  if (wanted === 'directory') host.inodes.createDirectory(parent, name, DIRECTORY_MODE)
  else createFile(host, point)
}

function createFile(host: Host, { parent, name }: MountPoint): void {
  try {
    host.inodes.createFile(parent, name, FILE_MODE)
  } catch (error) {
    host.inodes.createDirectory(parent, name, DIRECTORY_MODE)
    throw error
  }
}

function removeEmptyDirectory(host: Host, { parent, name, path }: MountPoint): void {
  try {
    host.inodes.removeDirectory(parent, name)
  } catch (error) {
    if (errorCode(error) !== 'ENOTEMPTY') throw error
    throw new Refusal(`mount directory ${quoted(path)} is not empty, so no file can take its place: empty it`)
  }
}
