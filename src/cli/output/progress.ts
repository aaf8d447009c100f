import type { WalkCounts } from '../../ownership/walk/report.ts'

const FIRST_PROGRESS_UPDATE_MS = 1000
const PROGRESS_UPDATE_INTERVAL_MS = 200

/** Returns a progress line that overwrites itself on a terminal, and appears after a second. */
export function createProgressLine(verb: string, columns: () => number, write: (text: string) => void) {
  let started = performance.now()
  let last = 0
  let total: number | undefined
  return {
    /** @param inodes expected number of inodes, counted before the walk begins */
    expect(inodes: number): void {
      total = inodes
      started = performance.now()
    },
    update(counts: WalkCounts): void {
      const now = performance.now()
      if (now - started < FIRST_PROGRESS_UPDATE_MS || now - last < PROGRESS_UPDATE_INTERVAL_MS) return
      last = now
      write(`\r${formatProgressLine({ ...counts, verb, total, elapsed: now - started }, columns() - 1)}\x1b[K`)
    },
    clear(): void {
      if (last > 0) write('\r\x1b[K')
      last = 0
    },
  }
}

interface WalkProgressFacts extends WalkCounts {
  verb: string
  /** Expected number of inodes; undefined: not counted. */
  total: number | undefined
  /** Milliseconds. */
  elapsed: number
}

const MIN_PROGRESS_BAR_LENGTH = 8
const CHANGE_WORDS_BY_VERB: Readonly<Record<string, string>> = { plan: 'would change', restore: 'put back' }

/**
 * Formats one line of at most `width` characters. With a known total it has a bar that fills the remaining width, the
 * percentage, count, rate and remaining time, in long or short form. Fields have a fixed length, so the line does not move.
 */
export function formatProgressLine(
  { verb, visited, changed, total, elapsed }: WalkProgressFacts,
  width: number,
): string {
  const perSecond = elapsed > 0 ? (visited / elapsed) * 1000 : 0
  const did = CHANGE_WORDS_BY_VERB[verb] ?? 'changed'
  const rate = `${formatCount(Math.round(perSecond))}/s`
  // The walk has exceeded the count, so the remaining number is unknown.
  if (total === undefined || visited > total || total === 0) {
    const plain = `${verb}: ${formatCount(visited)} looked at`
    const forms = [`${plain}, ${formatCount(changed)} ${did}, ${rate}`, `${plain}, ${rate}`]
    return pickFittingText(forms, width)
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
    return `${verb} ${formatProgressBar(part, Math.max(MIN_PROGRESS_BAR_LENGTH, room))} ${fields}`
  })
  return pickFittingText([...barred, `${verb} ${rest.at(-1)}`, percent], width)
}

/** Returns the first form that fits, or else the beginning of the last one. */
function pickFittingText(forms: readonly string[], width: number): string {
  return forms.find(({ length }) => length <= width) ?? (forms.at(-1) ?? '').slice(0, Math.max(0, width))
}

function formatProgressBar(part: number, length: number): string {
  const filled = Math.floor(part * length)
  return `[${'#'.repeat(filled)}${'-'.repeat(length - filled)}]`
}

const formatCount = (count: number) => count.toLocaleString('en')

/** Formats a count with at most three digits: 950, 9.5k, 12k, 1.2M. */
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

/**
 * Formats a text that overwrites a whole terminal. Lines are not cleared first, so nothing flickers.
 * @param rows number of lines of the terminal
 */
export function formatTerminalScreen(text: string, rows: number): string {
  const lines = text.split('\n').slice(0, -1)
  const isTooLong = lines.length > rows - 1
  const shown = isTooLong ? [...lines.slice(0, rows - 2), `… ${lines.length - rows + 2} more lines`] : lines
  return `\x1b[H${shown.map((line) => `${line}\x1b[K\n`).join('')}\x1b[J`
}
