import type { Host } from '../host/host.ts'
import { createRowFinder, type MountRow } from './mountinfo.ts'

/** A snapshot of the mount table, which is read at its first use. */
export interface TableSnapshot {
  text(): string
  findRow(id: number): MountRow | undefined
}

export function snapshotTable({ mounts }: Pick<Host, 'mounts'>): TableSnapshot {
  let text: string | undefined
  let findRow: ReturnType<typeof createRowFinder> | undefined
  const read = () => {
    text ??= mounts.table()
    return text
  }
  return {
    text: read,
    findRow(id) {
      findRow ??= createRowFinder(read())
      return findRow(id)
    },
  }
}
