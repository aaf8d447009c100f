import { escapeXml } from '../../scripts/docs/xml.ts'
import { type LogScale, logScale } from './scale.ts'

export interface Line {
  name: string
  /** Below the name. */
  note?: string
  /** Each [x, y], both greater than 0. */
  points: readonly (readonly [number, number])[]
}

/** Those of the axes have their units. */
export interface Titles {
  title: string
  x: string
  y: string
}

const WIDTH = 880
const HEIGHT = 480
const PLOT = { left: 80, right: 640, top: 50, bottom: 410 }
const LEGEND = { left: PLOT.right + 20, top: PLOT.top + 10, line: 40 }

type Marker = (x: number, y: number, r: number) => string

/** A colour and a marker for each line, so that they are told apart without colour too. */
const SERIES: readonly { colour: string; marker: Marker }[] = [
  { colour: '#0a84d6', marker: (x, y, r) => `M${x - r},${y}a${r},${r} 0 1 0 ${2 * r},0a${r},${r} 0 1 0 ${-2 * r},0z` },
  { colour: '#e0600a', marker: (x, y, r) => `M${x - r},${y - r}h${2 * r}v${2 * r}h${-2 * r}z` },
  { colour: '#c9a100', marker: (x, y, r) => `M${x},${y - r}l${r},${2 * r}h${-2 * r}z` },
  { colour: '#7d8590', marker: (x, y, r) => `M${x},${y - r}l${r},${r}l${-r},${r}l${-r},${-r}z` },
  { colour: '#b5539c', marker: (x, y, r) => `M${x},${y + r}l${r},${-2 * r}h${-2 * r}z` },
]

const STYLE = `text{font:13px system-ui,sans-serif;fill:#24292f}.grid{stroke:#8886;stroke-width:1}
@media(prefers-color-scheme:dark){text{fill:#e6edf3}}`

/**
 * A log-log chart as an SVG document, on no background. The first line is the widest, and the names are in the order of
 * the lines.
 */
export function chart({ title, ...axes }: Titles, lines: readonly Line[]): string {
  const all = lines.flatMap((line) => line.points)
  if (all.length === 0) throw new Error('no points to draw')
  if (lines.length > SERIES.length) throw new Error(`more than ${SERIES.length} lines could not be told apart`)
  const x = logScale(
    all.map(([value]) => value),
    PLOT.left,
    PLOT.right,
  )
  const y = logScale(
    all.map(([, value]) => value),
    PLOT.bottom,
    PLOT.top,
  )
  const [middle, centre] = [(PLOT.left + PLOT.right) / 2, (PLOT.top + PLOT.bottom) / 2]
  const parts = [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img">`,
    `<title>${escapeXml(title)}</title><style>${STYLE}</style>`,
    text(PLOT.left, 26, title),
    ...x.ticks.map((tick) => grid(x(tick), PLOT.top, x(tick), PLOT.bottom)),
    ...x.ticks.map((tick) => text(x(tick), PLOT.bottom + 20, label(tick), 'middle')),
    ...y.ticks.map((tick) => grid(PLOT.left, y(tick), PLOT.right, y(tick))),
    ...y.ticks.map((tick) => text(PLOT.left - 8, y(tick) + 4, label(tick), 'end')),
    text(middle, PLOT.bottom + 48, axes.x, 'middle'),
    `<g transform="rotate(-90 20 ${centre})">${text(20, centre, axes.y, 'middle')}</g>`,
    // The first is drawn last, above the others.
    ...lines.map((line, index) => curve(line, index, x, y)).reverse(),
    ...lines.map(legend),
    '</svg>',
  ]
  return `${parts.join('\n')}\n`
}

function curve({ points }: Line, index: number, x: LogScale, y: LogScale): string {
  const at = points.map(([a, b]) => [rounded(x(a)), rounded(y(b))] as const)
  const path = at.map((point) => point.join(',')).join(' ')
  return `<polyline points="${path}" fill="none" ${stroke(index)}/>${at.map((point) => mark(index, ...point)).join('')}`
}

function legend({ name, note = '' }: Line, index: number): string {
  const [left, top] = [LEGEND.left, LEGEND.top + index * LEGEND.line]
  const sample = `<line x1="${left}" y1="${top}" x2="${left + 30}" y2="${top}" ${stroke(index)}/>${mark(index, left + 15, top)}`
  return `${sample}${text(left + 40, top + 4, name)}${text(left + 40, top + 20, note)}`
}

const stroke = (index: number) => `stroke="${SERIES[index]?.colour}" stroke-width="${index === 0 ? 5 : 2}"`

const mark = (index: number, x: number, y: number) =>
  `<path class="marker" d="${SERIES[index]?.marker(x, y, index === 0 ? 7 : 5)}" fill="${SERIES[index]?.colour}"/>`

const label = (value: number) => Number(value.toPrecision(2)).toLocaleString('en', { maximumFractionDigits: 4 })

const rounded = (value: number) => Number(value.toFixed(1))

const grid = (x1: number, y1: number, x2: number, y2: number) =>
  `<line class="grid" x1="${x1.toFixed(1)}" y1="${y1.toFixed(1)}" x2="${x2.toFixed(1)}" y2="${y2.toFixed(1)}"/>`

const text = (x: number, y: number, words: string, anchor = 'start') =>
  `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" text-anchor="${anchor}">${escapeXml(words)}</text>`
