import { logScale } from './scale.ts'

export interface Line {
  name: string
  /** [files, milliseconds], both greater than 0. */
  points: readonly (readonly [number, number])[]
}

const WIDTH = 860
const HEIGHT = 470
const PLOT = { left: 70, right: 640, top: 50, bottom: 410 }
// Told apart without colour too: by dashes and by the order of the names.
const STROKES = ['#0a84d6', '#e0700a', '#7d8590', '#2a9d5c', '#b5539c']
const DASHES = ['', '', '7 4', '2 4', '9 3 2 3']

const STYLE = `text{font:13px system-ui,sans-serif;fill:#24292f}.grid{stroke:#8886;stroke-width:1}
@media(prefers-color-scheme:dark){text{fill:#e6edf3}}`

/** A log-log chart of time over number of files as an SVG document, on no background. */
export function chart(title: string, lines: readonly Line[]): string {
  const all = lines.flatMap((line) => line.points)
  if (all.length === 0) throw new Error('no points to draw')
  const x = logScale(
    all.map(([files]) => files),
    PLOT.left,
    PLOT.right,
  )
  const y = logScale(
    all.map(([, time]) => time),
    PLOT.bottom,
    PLOT.top,
  )
  const parts = [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img">`,
    `<title>${escaped(title)}</title><style>${STYLE}</style>`,
    text(PLOT.left, 26, title),
    ...x.ticks.map((tick) => grid(x(tick), PLOT.top, x(tick), PLOT.bottom)),
    ...x.ticks.map((tick) => text(x(tick), PLOT.bottom + 20, tick.toLocaleString('en'), 'middle')),
    ...y.ticks.map((tick) => grid(PLOT.left, y(tick), PLOT.right, y(tick))),
    ...y.ticks.map((tick) => text(PLOT.left - 8, y(tick) + 4, label(tick), 'end')),
    text((PLOT.left + PLOT.right) / 2, PLOT.bottom + 44, 'files', 'middle'),
    ...lines.map((line, index) => curve(line, index, x, y)),
    ...names(lines, y),
    '</svg>',
  ]
  return `${parts.join('\n')}\n`
}

function curve({ points }: Line, index: number, x: (value: number) => number, y: (value: number) => number): string {
  const stroke = STROKES[index % STROKES.length]
  const dash = DASHES[index % DASHES.length]
  const at = points.map(([files, time]) => [x(files).toFixed(1), y(time).toFixed(1)] as const)
  const dots = at.map(([cx, cy]) => `<circle cx="${cx}" cy="${cy}" r="3.5" fill="${stroke}"/>`)
  const path = at.map((point) => point.join(',')).join(' ')
  const dashes = dash ? ` stroke-dasharray="${dash}"` : ''
  return `<polyline points="${path}" fill="none" stroke="${stroke}" stroke-width="2.5"${dashes}/>${dots.join('')}`
}

/** Each name beside its line's end, the slowest on top, pushed apart where they would meet. */
function names(lines: readonly Line[], y: (value: number) => number): string[] {
  const ends = lines.map(({ name, points }, index) => ({ name, index, time: points.at(-1)?.[1] ?? 1 }))
  let free = PLOT.top
  return ends
    .sort((a, b) => b.time - a.time)
    .map(({ name, index, time }) => {
      const at = Math.max(free, y(time))
      free = at + 18
      const mark = `<rect x="${PLOT.right + 10}" y="${(at - 5).toFixed(1)}" width="10" height="10" fill="${STROKES[index % STROKES.length]}"/>`
      return `${mark}${text(PLOT.right + 26, at + 5, `${name}: ${label(time)}`)}`
    })
}

const label = (milliseconds: number) =>
  milliseconds < 1000
    ? `${Number(milliseconds.toPrecision(2))} ms`
    : `${Number((milliseconds / 1000).toPrecision(3))} s`

const grid = (x1: number, y1: number, x2: number, y2: number) =>
  `<line class="grid" x1="${x1.toFixed(1)}" y1="${y1.toFixed(1)}" x2="${x2.toFixed(1)}" y2="${y2.toFixed(1)}"/>`

const text = (x: number, y: number, words: string, anchor = 'start') =>
  `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" text-anchor="${anchor}">${escaped(words)}</text>`

const escaped = (words: string) => words.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;')
