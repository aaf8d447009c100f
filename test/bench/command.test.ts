import { expect, it } from 'vitest'
import { readMeasured } from '../../bench/command.ts'

it("a measured cost is read from the last line, in milliseconds and KiB, and the rest is the command's output", () => {
  const cost = { wall: 2.5, user: 1, system: 0.5, memory: 43_000 }
  expect(readMeasured('{"status":"Success"}\n2500000 1000000 500000 43000\n')).toEqual({
    cost,
    stdout: '{"status":"Success"}',
  })
  expect(readMeasured('two\nlines\n\n2500000 1000000 500000 43000\n')).toEqual({ cost, stdout: 'two\nlines\n' })
  expect(readMeasured('\n2500000 1000000 500000 43000\n')).toEqual({ cost, stdout: '' })
})
