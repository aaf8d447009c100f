import { spawnSync } from 'node:child_process'

const MEASURED_RUNS = 20

/** A small process of its own: what fork costs its parent grows with the parent's memory. */
const [program = '', node = ''] = process.argv.slice(2)
console.log(compareStartTimes(program, node))

/** Alternating runs, so that whatever else the machine does hits both alike. */
function compareStartTimes(program: string, node: string): string {
  const ours: number[] = []
  const bare: number[] = []
  for (let run = 0; run < MEASURED_RUNS; run++) {
    ours.push(measureRunMs(program, ['init']))
    bare.push(measureRunMs(node, ['-e', '0']))
  }
  const [a, b] = [computeMedian(ours), computeMedian(bare)]
  return `start: modekeep init ${a.toFixed(1)} ms, node -e 0 ${b.toFixed(1)} ms, ratio ${(a / b).toFixed(2)} (medians of ${MEASURED_RUNS})`
}

function measureRunMs(program: string, args: string[]): number {
  const start = process.hrtime.bigint()
  const { status, error } = spawnSync(program, args, { env: {}, stdio: 'ignore' })
  if (error ?? status !== 0) throw error ?? new Error(`${program} ${args.join(' ')} ended with status ${status}`)
  return Number(process.hrtime.bigint() - start) / 1e6
}

function computeMedian(values: number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length / 2
  return ((sorted[Math.ceil(middle - 1)] ?? 0) + (sorted[Math.floor(middle)] ?? 0)) / 2
}
