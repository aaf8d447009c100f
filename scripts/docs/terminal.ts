import { escapeXml } from './xml.ts'

/** A run of characters of one look. */
interface TextSpan {
  text: string
  classes: readonly string[]
}

const LINE_HEIGHT = 18
const CHARACTER_WIDTH = 8.2
const PICTURE_MARGINS = { side: 16, top: 14, bottom: 12 }

const PICTURE_STYLE = `text{font:13.6px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:#d0d7de;white-space:pre}
.bold,.typed{font-weight:600;fill:#fff}.dim{fill:#8b949e}.red{fill:#ff7b72}.green{fill:#7ee787}.yellow{fill:#e3b341}.cyan{fill:#79c0ff}`

/** Select Graphic Rendition (ECMA-48, 8.3.117), as far as modekeep writes it. */
const TEXT_STYLES_BY_CODE: Readonly<Record<string, string>> = {
  1: 'bold',
  2: 'dim',
  31: 'red',
  32: 'green',
  33: 'yellow',
  36: 'cyan',
}
const ENDED_STYLES_BY_CODE: Readonly<Record<string, readonly string[]>> = {
  22: ['bold', 'dim'],
  39: ['red', 'green', 'yellow', 'cyan'],
}

const ESCAPE_CHARACTER = '\u001b'

/**
 * What a terminal showed as an SVG document: dark on any page, as wide as its longest line, and at most as wide as told.
 * @param shown what was written, with its colours; a line that begins with "# " is one that was typed
 * @param columns of the terminal
 * @throws {Error} for a line that is wider, and for what is neither text nor a colour
 */
export function createTerminalPicture(title: string, shown: string, columns: number): string {
  const lines = shown.replaceAll('\r\n', '\n').trimEnd().split('\n').map(parseTextSpans)
  for (const spans of lines) {
    const line = spans.map(({ text }) => text).join('')
    if (line.length > columns) throw new Error(`${line.length} columns, of ${columns}: ${line}`)
  }
  const width = Math.ceil(2 * PICTURE_MARGINS.side + columns * CHARACTER_WIDTH)
  const height = PICTURE_MARGINS.top + lines.length * LINE_HEIGHT + PICTURE_MARGINS.bottom
  const texts = lines.flatMap((spans, at) => {
    const parts = spans.map(({ text, classes }) =>
      classes.length === 0 ? escapeXml(text) : `<tspan class="${classes.join(' ')}">${escapeXml(text)}</tspan>`,
    )
    const y = PICTURE_MARGINS.top + (at + 0.75) * LINE_HEIGHT
    return parts.length === 0
      ? []
      : [`<text xml:space="preserve" x="${PICTURE_MARGINS.side}" y="${y}">${parts.join('')}</text>`]
  })
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img">`,
    `<title>${escapeXml(title)}</title><style>${PICTURE_STYLE}</style>`,
    `<rect width="${width}" height="${height}" rx="8" fill="#0d1117"/>`,
    ...texts,
    '</svg>\n',
  ].join('\n')
}

function parseTextSpans(line: string): TextSpan[] {
  if (line.startsWith('# '))
    return [
      { text: '# ', classes: ['dim'] },
      { text: line.slice(2), classes: ['typed'] },
    ]
  const spans: TextSpan[] = []
  let looks = new Set<string>()
  const [plain = '', ...parts] = line.split(`${ESCAPE_CHARACTER}[`)
  const add = (text: string) => {
    if (text !== '') spans.push({ text, classes: [...looks] })
  }
  add(plain)
  for (const part of parts) {
    const [, codes, text = ''] = /^([\d;]*)m([^\p{Cc}]*)$/u.exec(part) ?? []
    if (codes === undefined) throw new Error(`not shown in a picture: ${JSON.stringify(part)}`)
    for (const code of codes.split(';')) looks = applyStyleCode(looks, code)
    add(text)
  }
  return spans
}

function applyStyleCode(looks: ReadonlySet<string>, code: string): Set<string> {
  if (code === '' || code === '0') return new Set()
  const look = TEXT_STYLES_BY_CODE[code]
  if (look !== undefined) return new Set([...looks, look])
  const ended = ENDED_STYLES_BY_CODE[code]
  if (ended === undefined) throw new Error(`no such look in a picture: ${code}`)
  return new Set([...looks].filter((each) => !ended.includes(each)))
}
