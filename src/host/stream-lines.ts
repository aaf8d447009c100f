const NEWLINE = 0x0a

/**
 * Yields the complete lines of a stream and drops an unterminated rest. Splits only at newlines: node:readline also
 * splits at characters that JSON may contain.
 */
export async function* readStreamLines(stream: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  let rest: Uint8Array[] = []
  for await (const chunk of stream) {
    let start = 0
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      yield Buffer.concat([...rest, chunk.subarray(start, end)]).toString()
      rest = []
      start = end + 1
    }
    if (start < chunk.length) rest.push(chunk.subarray(start))
  }
}
