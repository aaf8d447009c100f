import type { WalkCounts } from '../../ownership/walk/report.ts'

// Milliseconds.
const FIRST_AFTER = 1000
const EACH = 200

/** One line of a terminal that is written over, from a second on. */
export function progressLine(verb: string, columns: () => number, write: (text: string) => void) {
  let started = performance.now()
  let last = 0
  let total: number | undefined
  return {
    /** @param inodes how many there will be, about; counted before the walk begins */
    expect(inodes: number): void {
      total = inodes
      started = performance.now()
    },
    update(counts: WalkCounts): void {
      const now = performance.now()
      if (now - started < FIRST_AFTER || now - last < EACH) return
      last = now
      write(`\r${progressText({ ...counts, verb, total, elapsed: now - started }, columns() - 1)}\x1b[K`)
    },
    clear(): void {
      if (last > 0) write('\r\x1b[K')
      last = 0
    },
  }
}

interface ProgressFacts extends WalkCounts {
  verb: string
  /** Inodes in all, about; undefined: not counted. */
  total: number | undefined
  /** Milliseconds. */
  elapsed: number
}

const BAR = 20
const CHANGED: Readonly<Record<string, string>> = { plan: 'would change', restore: 'put back' }

/** One line of at most `width` characters: a bar and the remaining time where the total is known. */
export function progressText({ verb, visited, changed, total, elapsed }: ProgressFacts, width: number): string {
  const cut = (text: string) => text.slice(0, Math.max(0, width))
  const rate = elapsed > 0 ? (visited / elapsed) * 1000 : 0
  const did = `${grouped(changed)} ${CHANGED[verb] ?? 'changed'}`
  const speed = `${grouped(Math.round(rate))}/s`
  // More came than was counted: what is still to come is not known.
  if (total === undefined || visited > total || total === 0) {
    return cut(`${verb}: ${grouped(visited)} looked at, ${did}, ${speed}`)
  }
  const part = visited / total
  const left = rate > 0 ? `, ${duration((total - visited) / rate)} left` : ''
  const filled = Math.floor(part * BAR)
  const bar = `[${'#'.repeat(filled)}${'-'.repeat(BAR - filled)}] `
  const percent = `${String(Math.floor(part * 100)).padStart(3)}%`
  const short = `${verb} ${percent}  ${grouped(visited)} of ${grouped(total)}${left}`
  const long = `${verb} ${bar}${percent}  ${grouped(visited)} of ${grouped(total)}, ${did}, ${speed}${left}`
  return long.length <= width ? long : cut(short)
}

const grouped = (count: number) => count.toLocaleString('en')

function duration(seconds: number): string {
  const whole = Math.ceil(seconds)
  if (whole < 60) return `${whole} s`
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`
}
