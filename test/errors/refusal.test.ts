import { describe, expect, it, vi } from 'vitest'
import { createFault, renderFault } from '../../src/errors/fault.ts'
import {
  catchRefusalMessage,
  formatError,
  quoteValue,
  Refusal,
  unwrapSuppressedError,
} from '../../src/errors/refusal.ts'

describe('a refusal', () => {
  it('of one fault has that fault as its message', () => {
    const refusal = new Refusal(createFault('internal', 'it is wrong'))
    expect(refusal.message).toBe('it is wrong')
    expect(refusal.faults).toEqual([createFault('internal', 'it is wrong')])
    expect(refusal.name).toBe('Refusal')
  })

  it('of up to eight faults has all of them in its message', () => {
    expect(
      new Refusal([
        createFault('internal', '1'),
        createFault('internal', '2'),
        createFault('internal', '3'),
        createFault('internal', '4'),
        createFault('internal', '5'),
        createFault('internal', '6'),
        createFault('internal', '7'),
        createFault('internal', '8'),
      ]).message,
    ).toBe('1; 2; 3; 4; 5; 6; 7; 8')
  })

  it('of more than eight faults has eight in its message, counts the others, and keeps all in faults', () => {
    const faults = Array.from({ length: 1000 }, (_, n) => createFault('internal', `fault ${n}`))
    const refusal = new Refusal(faults)
    expect(refusal.message).toBe('fault 0; fault 1; fault 2; fault 3; fault 4; fault 5; fault 6; fault 7; and 992 more')
    expect(refusal.faults).toEqual(faults)
  })

  it("has a message that fits into a pod's status, with at least the first fault and the number of the others", () => {
    const long = Array.from({ length: 8 }, (_, n) => `${n} ${'x'.repeat(1500)}`)
    const { message, faults } = new Refusal(long.map((text) => createFault('internal', text)))
    expect(message).toBe(`${long[0]}; ${long[1]}; and 6 more`)
    expect(faults).toHaveLength(8)
  })

  it('keeps the beginning and the remedy of a fault that quotes a long text', () => {
    const { message, faults } = new Refusal(
      createFault('internal', `source ${'x'.repeat(100_000)} is wrong`, 'correct it'),
    )
    expect(message).toMatch(/^source x+… \(98128 characters left out\) …x+ is wrong: correct it$/)
    expect(message.length).toBeLessThan(2000)
    expect(faults.map((fault) => renderFault(fault))).toEqual([message])
  })

  it('keeps the error that caused the refusal', () => {
    const cause = new Error('ENOENT')
    expect(new Refusal(createFault('internal', 'it is missing'), { cause }).cause).toBe(cause)
  })
})

it('the first error is reported if the cleanup after it failed too', () => {
  const first = new Refusal(createFault('internal', 'it is missing'))
  const thrown = (() => {
    try {
      using _later = { [Symbol.dispose]: () => expect.fail('a lock') }
      using _ = { [Symbol.dispose]: () => expect.fail('a handle') }
      throw first
    } catch (error) {
      return error
    }
  })()
  expect(thrown).toBeInstanceOf(SuppressedError)
  expect(unwrapSuppressedError(thrown)).toBe(first)
  expect(formatError(thrown)).toBe('it is missing')
})

describe('a value in a message', () => {
  it.each([
    ['text', '"text"'],
    ['', '""'],
    ['a\nb\t"c"\u0000\u001b[31m', '"a\\nb\\t\\"c\\"\\u0000\\u001b[31m"'],
    [5, '5'],
    [null, 'null'],
    [undefined, 'undefined'],
    [{ a: [1] }, '{"a":[1]}'],
    ['x'.repeat(118), `"${'x'.repeat(118)}"`],
    ['x'.repeat(119), `"${'x'.repeat(119)}… (121 characters)`],
    ['x'.repeat(1_000_000), `"${'x'.repeat(119)}… (1000002 characters)`],
    ['\u0001'.repeat(200), `"${String.raw`\u0001`.repeat(19)}${String.raw`\u000`}… (202 characters)`],
    [`${'x'.repeat(118)}🗝${'x'.repeat(10)}`, `"${'x'.repeat(118)}… (132 characters)`],
    [`${'x'.repeat(117)}🗝${'x'.repeat(10)}`, `"${'x'.repeat(117)}🗝… (131 characters)`],
    [[`${'x'.repeat(117)}🗝`], `["${'x'.repeat(117)}… (123 characters)`],
  ])('is quoted, escaped and truncated: case %#', (value, shown) => {
    expect(quoteValue(value)).toBe(shown)
  })

  it("is truncated before it is escaped, so a pod's author cannot cause unlimited work", () => {
    const stringify = vi.spyOn(JSON, 'stringify')
    quoteValue('\u0001'.repeat(256 * 1024))
    const lengths = stringify.mock.calls.map(([text]) => String(text).length)
    stringify.mockRestore()
    expect(lengths).toEqual([120])
  })
})

describe('the refusal message of a check', () => {
  it('is returned if the check refuses, and undefined if it passes', () => {
    const check = () => {
      throw new Refusal([createFault('internal', 'one'), createFault('internal', 'two')])
    }
    expect(catchRefusalMessage(check)).toBe('one; two')
    expect(catchRefusalMessage(() => {})).toBeUndefined()
  })

  it('is not returned if the check throws another error', () => {
    const broken = () => {
      throw new TypeError('no function')
    }
    expect(() => catchRefusalMessage(broken)).toThrow(TypeError)
  })
})
