import type { WalkCounts } from '../../ownership/walk/report.ts'

// Milliseconds.
const FIRST_UPDATE_MS = 1000
const UPDATE_INTERVAL_MS = 200

/** One line of a terminal that is written over, from a second on. */
export function createProgressLine(verb: string, columns: () => number, write: (text: string) => void) {
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
      if (now - started < FIRST_UPDATE_MS || now - last < UPDATE_INTERVAL_MS) return
      last = now
      write(`\r${formatProgress({ ...counts, verb, total, elapsed: now - started }, columns() - 1)}\x1b[K`)
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

const MIN_BAR_LENGTH = 8
const CHANGE_WORDS: Readonly<Record<string, string>> = { plan: 'would change', restore: 'put back' }

/**
 * One line of at most `width` characters. Where the total is known that is a bar as long as there is room for, the part
 * that is done, the count, the rate and the remaining time: in words, or in short. No field changes its length while the
 * walk goes on, so that the line stands still.
 */
export function formatProgress({ verb, visited, changed, total, elapsed }: ProgressFacts, width: number): string {
  const perSecond = elapsed > 0 ? (visited / elapsed) * 1000 : 0
  const did = CHANGE_WORDS[verb] ?? 'changed'
  const rate = `${formatCount(Math.round(perSecond))}/s`
  // More came than was counted: what is still to come is not known.
  if (total === undefined || visited > total || total === 0) {
    const plain = `${verb}: ${formatCount(visited)} looked at`
    const forms = [`${plain}, ${formatCount(changed)} ${did}, ${rate}`, `${plain}, ${rate}`]
    return pickFitting(forms, width)
  }
  const part = visited / total
  const percent = `${String(Math.floor(part * 100)).padStart(3)}%`
  const seconds = perSecond > 0 ? (total - visited) / perSecond : undefined
  const like = (text: string, widest: string) => text.padStart(widest.length)
  const [all, allShort] = [formatCount(total), formatShortCount(total)]
  const count = `${like(formatCount(visited), all)} of ${all}`
  const speed = like(rate, '100,000/s')
  const left = seconds === undefined ? '' : like(`${formatDuration(seconds)} left`, '59 min 59 s left')
  const countShort = `${like(formatShortCount(visited), '9.9M')}/${allShort}`
  const leftShort = seconds === undefined ? '' : like(`${formatShortDuration(seconds)} left`, '59m59s left')
  const rest = [
    [percent, count, `${like(formatCount(changed), all)} ${did}`, speed, left],
    [percent, count, speed, left],
    [percent, countShort, like(`${formatShortCount(perSecond)}/s`, '9.9M/s'), leftShort],
    [percent, countShort, leftShort],
  ].map((fields) => fields.filter(Boolean).join('  '))
  const barred = rest.map((fields) => {
    const room = width - `${verb} [] ${fields}`.length
    return `${verb} ${formatBar(part, Math.max(MIN_BAR_LENGTH, room))} ${fields}`
  })
  return pickFitting([...barred, `${verb} ${rest.at(-1)}`, percent], width)
}

/** The first that fits; of none the beginning of the last. */
function pickFitting(forms: readonly string[], width: number): string {
  return forms.find(({ length }) => length <= width) ?? (forms.at(-1) ?? '').slice(0, Math.max(0, width))
}

function formatBar(part: number, length: number): string {
  const filled = Math.floor(part * length)
  return `[${'#'.repeat(filled)}${'-'.repeat(length - filled)}]`
}

const formatCount = (count: number) => count.toLocaleString('en')

/** Three digits at most: 950, 9.5k, 12k, 1.2M. */
function formatShortCount(count: number): string {
  const [unit, size] = count < 1000 ? ['', 1] : count < 1_000_000 ? ['k', 1000] : ['M', 1_000_000]
  const scaled = count / size
  return `${unit !== '' && scaled < 10 ? (Math.floor(scaled * 10) / 10).toFixed(1) : Math.floor(scaled)}${unit}`
}

function formatDuration(seconds: number): string {
  const [hours, minutes, rest] = splitSeconds(seconds)
  if (hours > 0) return `${hours} h ${minutes} min`
  return minutes > 0 ? `${minutes} min ${rest} s` : `${rest} s`
}

function formatShortDuration(seconds: number): string {
  const [hours, minutes, rest] = splitSeconds(seconds)
  if (hours > 0) return `${hours}h${minutes}m`
  return minutes > 0 ? `${minutes}m${rest}s` : `${rest}s`
}

function splitSeconds(seconds: number): [hours: number, minutes: number, seconds: number] {
  const whole = Math.ceil(seconds)
  return [Math.floor(whole / 3600), Math.floor((whole % 3600) / 60), whole % 60]
}
