import type { Host } from '../host/host.ts'
import { type MountRow, rowsById } from './mountinfo.ts'

/** The mount table of one moment, read when it is first needed. */
export interface TableSnapshot {
  text(): string
  findRow(id: number): MountRow | undefined
}

export function snapshotTable({ mounts }: Pick<Host, 'mounts'>): TableSnapshot {
  let text: string | undefined
  let findRow: ReturnType<typeof rowsById> | undefined
  const read = () => {
    text ??= mounts.table()
    return text
  }
  return {
    text: read,
    findRow(id) {
      findRow ??= rowsById(read())
      return findRow(id)
    },
  }
}
