import { expect, it } from 'vitest'
import { readStreamLines } from '../../src/host/worker-process.ts'

async function lines(...chunks: string[]): Promise<string[]> {
  async function* stream() {
    for (const chunk of chunks) yield Buffer.from(chunk, 'latin1')
  }
  return Array.fromAsync(readStreamLines(stream()))
}

const bytes = (text: string) => Buffer.from(text).toString('latin1')

it.each([
  ['one', ['a\n'], ['a']],
  ['several in a chunk', ['a\n\nb\n'], ['a', '', 'b']],
  ['one in several chunks', ['a', 'b', 'c\nd', '\n'], ['abc', 'd']],
  ['what is cut off is none', ['a\nb'], ['a']],
  ['none', [], []],
])('a stream has lines: %s', async (_what, chunks, expected) => {
  expect(await lines(...chunks)).toEqual(expected)
})

it('ends a line at a newline alone, and puts letters together that were cut in two', async () => {
  const text = 'a\u2028b\u2029c\rd\u{1f600}'
  for (let cut = 0; cut <= bytes(text).length; cut++) {
    expect(await lines(bytes(text).slice(0, cut), `${bytes(text).slice(cut)}\n`)).toEqual([text])
  }
})
