import { isScalar, type Node, type Pair, type Scalar, type YAMLMap } from 'yaml'

/** A pair of a map with a scalar key. */
export type YamlMapEntry = Pair<Scalar, Node> & { value: Node }

/** A range of a text, and its replacement. */
interface TextEdit {
  from: number
  to: number
  text: string
}

/** Changes ranges of a text. All other bytes stay as they are, also comments and whitespace. */
export class TextEdits {
  readonly #text: string
  readonly #edits: TextEdit[] = []
  readonly #newline: string

  constructor(text: string) {
    this.#text = text
    this.#newline = text.includes('\r\n') ? '\r\n' : '\n'
  }

  /** Sets the value of a scalar, in its present quotes. */
  setValue(node: Node, value: string): void {
    const { from, to } = this.#findExtent(node)
    this.#edits.push({ from, to, text: formatYamlScalar(value, this.#text[from] ?? '') })
  }

  /** Adds `key: value` after a pair of a map, in the same style. */
  addAfter(map: YAMLMap, pair: YamlMapEntry, key: string, value: string): void {
    const quote = this.#text[pair.key.range?.[0] ?? 0] ?? ''
    const entry = `${formatYamlScalar(key, quote)}: ${formatYamlScalar(value, quote)}`
    const { to } = this.#findExtent(pair.value)
    if (map.flow) {
      this.#edits.push({ from: to, to, text: `, ${entry}` })
      return
    }
    const end = this.#findLineEnd(to)
    this.#edits.push({ from: end, to: end, text: `${this.#newline}${' '.repeat(this.#findColumn(pair.key))}${entry}` })
  }

  /** Removes pairs from a map. A comment after a pair stays. */
  remove(map: YAMLMap, pairs: ReadonlySet<unknown>): void {
    const items = map.items as YamlMapEntry[]
    let kept: YamlMapEntry | undefined
    for (const [index, pair] of items.entries()) {
      if (!pairs.has(pair)) kept = pair
      else if (map.flow) this.#removeBetweenCommas(pair, kept, items[index + 1])
      else this.#removeLines(pair)
    }
  }

  #removeBetweenCommas(pair: YamlMapEntry, kept: YamlMapEntry | undefined, next: typeof kept): void {
    const { to } = this.#findExtent(pair.value)
    const from = pair.key.range?.[0] ?? 0
    if (kept !== undefined) this.#edits.push({ from: this.#findExtent(kept.value).to, to, text: '' })
    else this.#edits.push({ from, to: next?.key.range?.[0] ?? to, text: '' })
  }

  #removeLines(pair: YamlMapEntry): void {
    const from = pair.key.range?.[0] ?? 0
    const { to } = this.#findExtent(pair.value)
    const end = this.#findLineEnd(to)
    const comment = this.#text.slice(to, end).trim()
    if (comment !== '') this.#edits.push({ from, to: end, text: comment })
    else this.#edits.push({ from: this.#text.lastIndexOf('\n', from) + 1, to: end + this.#newline.length, text: '' })
  }

  /** Returns the text with all changes. */
  apply(): string {
    let result = ''
    let at = 0
    // Changes at the same position keep the order in which they were requested.
    for (const { from, to, text } of this.#edits.toSorted((one, other) => one.from - other.from)) {
      result += this.#text.slice(at, from) + text
      // A removed pair extends to the next one, so ranges overlap if both are removed.
      at = Math.max(at, to)
    }
    return result + this.#text.slice(at)
  }

  /** Returns the range of a value, without what follows it. */
  #findExtent(node: Node): { from: number; to: number } {
    const [from = 0, to = 0] = node.range ?? []
    // A block scalar's range ends where the next line begins.
    const isBlock = isScalar(node) && node.type?.startsWith('BLOCK_')
    return { from, to: isBlock ? from + this.#text.slice(from, to).trimEnd().length : to }
  }

  #findLineEnd(from: number): number {
    const at = this.#text.indexOf('\n', from)
    const end = at < 0 ? this.#text.length : at
    return this.#text[end - 1] === '\r' ? end - 1 : end
  }

  #findColumn(node: Node): number {
    const from = node.range?.[0] ?? 0
    return from - this.#text.lastIndexOf('\n', from - 1) - 1
  }
}

/** Formats a scalar in the given quotes, or plain if YAML reads it as a string. */
function formatYamlScalar(value: string, quote: string): string {
  if (quote === "'") return `'${value.replaceAll("'", "''")}'`
  const isPlain = /^[A-Za-z/][\w./:@-]*$/.test(value) && !/:$/.test(value) && !YAML_NON_STRING_WORDS.test(value)
  return quote === '"' || !isPlain ? JSON.stringify(value) : value
}

/** Plain words that YAML 1.1, which Kubernetes reads, does not parse as strings. */
const YAML_NON_STRING_WORDS = /^(y|n|yes|no|true|false|on|off|null|~)$/i
