import { styleText } from 'node:util'
import type { Listed } from '../../test/helpers/tree.ts'

type ListedFiles = Record<string, Listed>

interface DemoMoments {
  mounted: ListedFiles
  restarted: ListedFiles
  shared: ListedFiles
  restored: ListedFiles
}

/** Kubelet's rule for a writable volume (kubernetes pkg/volume/volume_linux.go): OR in rw-rw----. */
const KUBELET_MODE_MASK = 0o660

const DEMO_COLUMNS = ['file', 'before', "kubelet's rule", 'mounted', '3 restarts', 'second pod', 'restored'] as const

/** One row a file, one column a moment: `mode:group`, as it really is then. */
export function printDemoTable(before: ListedFiles, moments: DemoMoments): void {
  const rows = Object.keys(before)
    .filter((path) => path !== '.')
    .sort()
    .map((path) => {
      const mode = before[path]?.mode ?? ''
      const kubelet = `${(Number.parseInt(mode, 8) | KUBELET_MODE_MASK).toString(8).padStart(4, '0')}:2000`
      const later = Object.values(moments).map((files: ListedFiles) => formatModeAndGroup(files[path]))
      return [path, formatModeAndGroup(before[path]), kubelet, ...later]
    })
  const widths = DEMO_COLUMNS.map((title, column) =>
    Math.max(title.length, ...rows.map((row) => row[column]?.length ?? 0)),
  )
  const line = (cells: readonly string[]) =>
    `  ${cells.map((cell, n) => cell.padEnd(widths[n] ?? 0)).join('  ')}`.trimEnd()
  console.log(styleText('bold', line(DEMO_COLUMNS)))
  for (const row of rows) console.log(line(row))
}

function formatModeAndGroup(file: Listed | undefined): string {
  return file ? `${file.mode}:${file.gid}` : 'gone'
}
