const NEWLINE = 0x0a

/**
 * The lines of a stream, whole ones alone: what comes last without its end was cut off. Split at no other character, as
 * node:readline would: JSON leaves some of those in its texts.
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
