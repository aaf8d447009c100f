import { styleText } from 'node:util'
import type { Listed } from '../../test/helpers/tree.ts'

type Files = Record<string, Listed>

interface Moments {
  mounted: Files
  restarted: Files
  shared: Files
  restored: Files
}

/** Kubelet's rule for a writable volume (kubernetes pkg/volume/volume_linux.go): OR in rw-rw----. */
const KUBELET_MASK = 0o660

const COLUMNS = ['file', 'before', "kubelet's rule", 'mounted', '3 restarts', 'second pod', 'restored'] as const

/** One row a file, one column a moment: `mode:group`, as it really is then. */
export function printTable(before: Files, moments: Moments): void {
  const rows = Object.keys(before)
    .filter((path) => path !== '.')
    .sort()
    .map((path) => {
      const mode = before[path]?.mode ?? ''
      const kubelet = `${(Number.parseInt(mode, 8) | KUBELET_MASK).toString(8).padStart(4, '0')}:2000`
      const later = Object.values(moments).map((files: Files) => shown(files[path]))
      return [path, shown(before[path]), kubelet, ...later]
    })
  const widths = COLUMNS.map((title, column) => Math.max(title.length, ...rows.map((row) => row[column]?.length ?? 0)))
  const line = (cells: readonly string[]) =>
    `  ${cells.map((cell, n) => cell.padEnd(widths[n] ?? 0)).join('  ')}`.trimEnd()
  console.log(styleText('bold', line(COLUMNS)))
  for (const row of rows) console.log(line(row))
}

function shown(file: Listed | undefined): string {
  return file ? `${file.mode}:${file.gid}` : 'gone'
}
