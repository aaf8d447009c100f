import { aligned, duration } from './columns.ts'
import { nodeTable } from './node/table.ts'
import { CASES, type Measurement, type Results, ratioOf, timeOf, YARDSTICK } from './results.ts'
import { targetLines } from './targets.ts'

/** Everything for people; `markdown` fences the tables. */
export function report(results: Results, markdown: boolean): string {
  const heading = (text: string) => (markdown ? `## ${text}` : text)
  const block = (lines: readonly string[]) => (markdown ? ['```', ...lines, '```'] : lines)
  const { measurements } = results
  const lines = [...(markdown ? ['# modekeep, benchmark', ''] : [])]
  lines.push(...block(Object.entries(results.machine).map(([key, value]) => `${key.padEnd(16)} ${value}`)), '')
  for (const fileSystem of new Set(measurements.map((one) => one.fileSystem))) {
    for (const name of CASES) {
      const rows = measurements.filter((one) => one.fileSystem === fileSystem && one.case === name)
      if (rows.length === 0) continue
      lines.push(heading(`${fileSystem}, ${name}: median of time, and ratio to ${YARDSTICK[name]}`))
      lines.push(...block(table(measurements, rows)), '')
    }
  }
  if (results.node.length > 0) {
    lines.push(heading('A node with many mounts: median of a call, and ratio'), ...block(nodeTable(results.node)), '')
  }
  for (const { what, reason } of results.absent) lines.push(`absent: ${what}: ${reason}`)
  if (results.absent.length > 0) lines.push('')
  lines.push(heading('Targets, 200,000 files on ext4'), ...block(targetLines(measurements)))
  return `${lines.join('\n')}\n`
}

function table(all: readonly Measurement[], rows: readonly Measurement[]): string[] {
  const sizes = [...new Set(rows.map((row) => row.files))]
  const peers = [...new Set(rows.map((row) => row.peer))]
  const [first] = rows
  if (!first) return []
  const header = ['files', ...sizes.flatMap((files) => [files.toLocaleString('en'), ''])]
  const body = peers.map((peer) => [
    peer,
    ...sizes.flatMap((files) => {
      const of = { ...first, files, peer }
      const [time, ratio] = [timeOf(all, of), ratioOf(all, of)]
      return [time === undefined ? '–' : duration(time), ratio === undefined ? '–' : ratio.toFixed(2)]
    }),
  ])
  return aligned([header, ...body])
}
