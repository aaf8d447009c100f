import { escaped } from './xml.ts'

/** A run of characters of one look. */
interface Span {
  text: string
  classes: readonly string[]
}

const LINE = 18
const CHARACTER = 8.2
const EDGE = { side: 16, top: 14, bottom: 12 }

const STYLE = `text{font:13.6px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:#d0d7de;white-space:pre}
.bold,.typed{font-weight:600;fill:#fff}.dim{fill:#8b949e}.red{fill:#ff7b72}.green{fill:#7ee787}.yellow{fill:#e3b341}.cyan{fill:#79c0ff}`

/** Select Graphic Rendition (ECMA-48, 8.3.117), as far as modekeep writes it. */
const LOOKS: Readonly<Record<string, string>> = {
  1: 'bold',
  2: 'dim',
  31: 'red',
  32: 'green',
  33: 'yellow',
  36: 'cyan',
}
const ENDS: Readonly<Record<string, readonly string[]>> = {
  22: ['bold', 'dim'],
  39: ['red', 'green', 'yellow', 'cyan'],
}

const ESCAPE = '\u001b'

/**
 * What a terminal showed as an SVG document: dark on any page, as wide as its longest line, and at most as wide as told.
 * @param shown what was written, with its colours; a line that begins with "# " is one that was typed
 * @param columns of the terminal
 * @throws {Error} for a line that is wider, and for what is neither text nor a colour
 */
export function terminalPicture(title: string, shown: string, columns: number): string {
  const lines = shown.replaceAll('\r\n', '\n').trimEnd().split('\n').map(spansOf)
  for (const spans of lines) {
    const line = spans.map(({ text }) => text).join('')
    if (line.length > columns) throw new Error(`${line.length} columns, of ${columns}: ${line}`)
  }
  const width = Math.ceil(2 * EDGE.side + columns * CHARACTER)
  const height = EDGE.top + lines.length * LINE + EDGE.bottom
  const texts = lines.flatMap((spans, at) => {
    const parts = spans.map(({ text, classes }) =>
      classes.length === 0 ? escaped(text) : `<tspan class="${classes.join(' ')}">${escaped(text)}</tspan>`,
    )
    const y = EDGE.top + (at + 0.75) * LINE
    return parts.length === 0 ? [] : [`<text xml:space="preserve" x="${EDGE.side}" y="${y}">${parts.join('')}</text>`]
  })
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img">`,
    `<title>${escaped(title)}</title><style>${STYLE}</style>`,
    `<rect width="${width}" height="${height}" rx="8" fill="#0d1117"/>`,
    ...texts,
    '</svg>\n',
  ].join('\n')
}

function spansOf(line: string): Span[] {
  if (line.startsWith('# '))
    return [
      { text: '# ', classes: ['dim'] },
      { text: line.slice(2), classes: ['typed'] },
    ]
  const spans: Span[] = []
  let looks = new Set<string>()
  const [plain = '', ...parts] = line.split(`${ESCAPE}[`)
  const add = (text: string) => {
    if (text !== '') spans.push({ text, classes: [...looks] })
  }
  add(plain)
  for (const part of parts) {
    const [, codes, text = ''] = /^([\d;]*)m([^\p{Cc}]*)$/u.exec(part) ?? []
    if (codes === undefined) throw new Error(`not shown in a picture: ${JSON.stringify(part)}`)
    for (const code of codes.split(';')) looks = changed(looks, code)
    add(text)
  }
  return spans
}

function changed(looks: ReadonlySet<string>, code: string): Set<string> {
  if (code === '' || code === '0') return new Set()
  const look = LOOKS[code]
  if (look !== undefined) return new Set([...looks, look])
  const ended = ENDS[code]
  if (ended === undefined) throw new Error(`no such look in a picture: ${code}`)
  return new Set([...looks].filter((each) => !ended.includes(each)))
}
