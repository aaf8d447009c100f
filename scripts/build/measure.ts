import { spawnSync } from 'node:child_process'

const RUNS = 20

/** A small process of its own: what fork costs its parent grows with the parent's memory. */
const [program = '', node = ''] = process.argv.slice(2)
console.log(compareStart(program, node))

/** Alternating runs, so that whatever else the machine does hits both alike. */
function compareStart(program: string, node: string): string {
  const ours: number[] = []
  const bare: number[] = []
  for (let run = 0; run < RUNS; run++) {
    ours.push(milliseconds(program, ['init']))
    bare.push(milliseconds(node, ['-e', '0']))
  }
  const [a, b] = [median(ours), median(bare)]
  return `start: modekeep init ${a.toFixed(1)} ms, node -e 0 ${b.toFixed(1)} ms, ratio ${(a / b).toFixed(2)} (medians of ${RUNS})`
}

function milliseconds(program: string, args: string[]): number {
  const start = process.hrtime.bigint()
  const { status, error } = spawnSync(program, args, { env: {}, stdio: 'ignore' })
  if (error ?? status !== 0) throw error ?? new Error(`${program} ${args.join(' ')} ended with status ${status}`)
  return Number(process.hrtime.bigint() - start) / 1e6
}

function median(values: number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length / 2
  return ((sorted[Math.ceil(middle - 1)] ?? 0) + (sorted[Math.floor(middle)] ?? 0)) / 2
}
