import { isScalar, type Node, type Pair, type Scalar, type YAMLMap } from 'yaml'

/** A pair of a map whose key is a word. */
export type Entry = Pair<Scalar, Node> & { value: Node }

/** A part of a text, and what takes its place. */
interface Edit {
  from: number
  to: number
  text: string
}

/** Changes of a text by place: all that nobody names stays byte for byte, comments and blanks too. */
export class Edits {
  readonly #text: string
  readonly #edits: Edit[] = []
  readonly #newline: string

  constructor(text: string) {
    this.#text = text
    this.#newline = text.includes('\r\n') ? '\r\n' : '\n'
  }

  /** Gives a scalar another value, in the quotes that it has. */
  setValue(node: Node, value: string): void {
    const { from, to } = this.#extent(node)
    this.#edits.push({ from, to, text: written(value, this.#text[from] ?? '') })
  }

  /** Puts `key: value` behind a pair of a map, written like that. */
  addAfter(map: YAMLMap, pair: Entry, key: string, value: string): void {
    const quote = this.#text[pair.key.range?.[0] ?? 0] ?? ''
    const entry = `${written(key, quote)}: ${written(value, quote)}`
    const { to } = this.#extent(pair.value)
    if (map.flow) {
      this.#edits.push({ from: to, to, text: `, ${entry}` })
      return
    }
    const end = this.#endOfLine(to)
    this.#edits.push({ from: end, to: end, text: `${this.#newline}${' '.repeat(this.#column(pair.key))}${entry}` })
  }

  /** Takes pairs out of a map; a comment behind one stays. */
  remove(map: YAMLMap, pairs: ReadonlySet<unknown>): void {
    const items = map.items as Entry[]
    let kept: Entry | undefined
    for (const [index, pair] of items.entries()) {
      if (!pairs.has(pair)) kept = pair
      else if (map.flow) this.#removeBetweenCommas(pair, kept, items[index + 1])
      else this.#removeLines(pair)
    }
  }

  #removeBetweenCommas(pair: Entry, kept: Entry | undefined, next: typeof kept): void {
    const { to } = this.#extent(pair.value)
    const from = pair.key.range?.[0] ?? 0
    if (kept !== undefined) this.#edits.push({ from: this.#extent(kept.value).to, to, text: '' })
    else this.#edits.push({ from, to: next?.key.range?.[0] ?? to, text: '' })
  }

  #removeLines(pair: Entry): void {
    const from = pair.key.range?.[0] ?? 0
    const { to } = this.#extent(pair.value)
    const end = this.#endOfLine(to)
    const comment = this.#text.slice(to, end).trim()
    if (comment !== '') this.#edits.push({ from, to: end, text: comment })
    else this.#edits.push({ from: this.#text.lastIndexOf('\n', from) + 1, to: end + this.#newline.length, text: '' })
  }

  /** The text with all changes. */
  applied(): string {
    let done = ''
    let at = 0
    // Those of one place in the order in which they were asked for.
    for (const { from, to, text } of this.#edits.toSorted((one, other) => one.from - other.from)) {
      done += this.#text.slice(at, from) + text
      // What is taken out before a pair reaches to it, where pairs behind that go too.
      at = Math.max(at, to)
    }
    return done + this.#text.slice(at)
  }

  /** Where a value is written, without what follows it. */
  #extent(node: Node): { from: number; to: number } {
    const [from = 0, to = 0] = node.range ?? []
    // A block scalar's range ends where the next line begins.
    const isBlock = isScalar(node) && node.type?.startsWith('BLOCK_')
    return { from, to: isBlock ? from + this.#text.slice(from, to).trimEnd().length : to }
  }

  #endOfLine(from: number): number {
    const at = this.#text.indexOf('\n', from)
    const end = at < 0 ? this.#text.length : at
    return this.#text[end - 1] === '\r' ? end - 1 : end
  }

  #column(node: Node): number {
    const from = node.range?.[0] ?? 0
    return from - this.#text.lastIndexOf('\n', from - 1) - 1
  }
}

/** Plain where YAML lets it be a string of its own, else in quotes; in those that were there before. */
function written(value: string, quote: string): string {
  if (quote === "'") return `'${value.replaceAll("'", "''")}'`
  const isPlain = /^[A-Za-z/][\w./:@-]*$/.test(value) && !/:$/.test(value) && !WORDS.test(value)
  return quote === '"' || !isPlain ? JSON.stringify(value) : value
}

/** What YAML 1.1, which Kubernetes reads, takes for something else than a string. */
const WORDS = /^(y|n|yes|no|true|false|on|off|null|~)$/i
