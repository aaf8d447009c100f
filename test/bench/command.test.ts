import { expect, it } from 'vitest'
import { readMeasured } from '../../bench/command.ts'

it('a measured cost is read from the last line of the output, in milliseconds and KiB', () => {
  const cost = { wall: 2.5, user: 1, system: 0.5, memory: 43_000 }
  expect(readMeasured('{"status":"Success"}\n2500000 1000000 500000 43000\n')).toEqual({
    cost,
    stdout: '{"status":"Success"}',
  })
  expect(readMeasured('two\nlines\n\n2500000 1000000 500000 43000\n')).toEqual({ cost, stdout: 'two\nlines\n' })
  expect(readMeasured('\n2500000 1000000 500000 43000\n')).toEqual({ cost, stdout: '' })
})
