import type { Host } from '../host/host.ts'
import { layersAt, type MountRow, parseMountinfo } from './mountinfo.ts'

/** The mounts that lie on a path now, the lowest first. It reads the whole mount table. */
export function layersAtPath(host: Host, path: string): MountRow[] {
  return layersAt(parseMountinfo(host.mounts.table()), path)
}
