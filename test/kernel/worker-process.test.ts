import { expect, it } from 'vitest'
import { readStreamLines } from '../../src/kernel/worker-process.ts'

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
  ['no line without its newline', ['a\nb'], ['a']],
  ['none', [], []],
])('a stream is split into lines: %s', async (_what, chunks, expected) => {
  expect(await lines(...chunks)).toEqual(expected)
})

it('a line ends only at a newline, and characters that were cut in two are joined', async () => {
  const text = 'a\u2028b\u2029c\rd\u{1f600}'
  for (let cut = 0; cut <= bytes(text).length; cut++) {
    expect(await lines(bytes(text).slice(0, cut), `${bytes(text).slice(cut)}\n`)).toEqual([text])
  }
})
