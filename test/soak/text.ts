import type { Report } from './run.ts'

const kib = (bytes: number) => `${Math.round(bytes / 1024)} KiB`

/** The report for people. */
export function text(report: Report): string {
  const { calls, state, descriptors, watcher, kinds, odd } = report
  const rows: [string, string][] = [
    ['rounds', `${report.rounds}, ${report.pods} pods, seeds from ${report.seed}`],
    [
      'volumes',
      Object.entries(kinds)
        .map(([kind, times]) => `${times} ${kind}`)
        .join(', '),
    ],
    [
      'calls',
      `${calls.calls}, ${calls.killed} killed, ${calls.refused} refused for another group, ${calls.heals} heals`,
    ],
    ['daemons killed', String(calls.daemonsKilled)],
    [
      'checkpoints',
      `${report.checkpoints}: mounts, processes, descriptors, loop devices, records, locks, owners and modes`,
    ],
    ['state directory', `${kib(state.start)} at the start, ${kib(state.max)} at most, ${kib(state.end)} at the end`],
    ['descriptors', `${descriptors.start} at the start, ${descriptors.end} at the end`],
    ['heal --watch', `descriptors ${watcher.descriptors.join(' to ')}, memory ${watcher.residentKiB.join(' to ')} KiB`],
    ['time', `${report.seconds.toFixed(0)} s`],
  ]
  const width = Math.max(...rows.map(([name]) => name.length))
  const table = rows.map(([name, value]) => `${name.padEnd(width)}  ${value}\n`).join('')
  const faults = odd.map((what) => `ODD ${what}\n`).join('')
  return `${faults}${table}`
}

/** How far it is. */
export function progress({ passed, failed, rounds, calls }: Report): string {
  return `${passed + failed} of ${rounds} rounds, ${calls.calls} calls, ${calls.killed} killed, ${failed} odd`
}
