import { type Results, timeOf } from '../results.ts'
import { chart } from './chart.ts'

/** The first walk on the first file system that was measured: time over number of files, one line per peer. */
export function drawOwnership({ measurements, machine }: Results): string {
  const [first] = measurements
  if (!first) throw new Error('nothing was measured')
  const of = { fileSystem: first.fileSystem, case: 'first walk' } as const
  const walks = measurements.filter((one) => one.fileSystem === of.fileSystem && one.case === of.case)
  const lines = [...new Set(walks.map((one) => one.peer))].map((peer) => ({
    name: peer,
    points: walks
      .filter((one) => one.peer === peer)
      .map((one) => [one.files, timeOf(measurements, { ...of, files: one.files, peer }) ?? 0] as const),
  }))
  return chart(`A volume's first walk on ${of.fileSystem}, ${machine.cores} cores, ${machine.CPU}`, lines)
}
