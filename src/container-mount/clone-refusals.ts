import { quoted, Refusal } from '../errors/refusal.ts'
import type { Handle, Host } from '../host/host.ts'
import { readFileSystemType } from '../mount-table/file-system.ts'
import { parseMountinfo } from '../mount-table/mountinfo.ts'
import type { TableSnapshot } from '../mount-table/table-snapshot.ts'
import { type CloneRequest, findPropagation, LEAVE_OUT } from './clone-request.ts'

export function refusePropagation({ options }: CloneRequest): void {
  const option = findPropagation(options)
  if (option === undefined) return
  throw new Refusal(
    `has mount propagation (${option}), which a mapped clone does not take part in: leave "mountPropagation" out, or the volume out of the annotation`,
  )
}

export function refuseType(host: Host, { fsTypes }: CloneRequest, handle: Handle): void {
  if (fsTypes === undefined) return
  const type = readFileSystemType(host, handle) ?? 'an unknown file system'
  if (fsTypes.includes(type)) return
  throw new Refusal(
    `is on ${type}, and this node's configuration ("map") allows ${fsTypes.join(', ')} here: have a rule name it, or ${LEAVE_OUT}`,
  )
}

/** A clone contains one mount. Mounts inside would be missing, and the files that they cover would be visible. */
export function refuseMountsBelow({ inodes, mounts }: Host, table: TableSnapshot, handle: Handle, path: string): void {
  const { mountRoot, mountId } = inodes.statMountPoint(handle)
  // The usual case, without reading the mount table: 1,000 mounts take 2 ms.
  if (mountRoot && mounts.hasMountsOn(mountId) === false) return
  const text = table.text()
  const shown = path.replace(/[ \t\n\\]/g, (byte) => `\\${byte.charCodeAt(0).toString(8).padStart(3, '0')}`)
  // Parses the table only if the text contains the path, because thousands of mounts take milliseconds.
  if (!text.includes(` ${shown === '/' ? '' : shown}/`)) return
  const below = parseMountinfo(text).find(({ mountPoint }) => mountPoint.startsWith(path === '/' ? '/' : `${path}/`))
  if (below === undefined) return
  throw new Refusal(
    `has another mount inside (${quoted(below.mountPoint)}), and only a volume without one can be mapped: mount a directory that has none`,
  )
}
