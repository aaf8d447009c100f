import { describe, expect, it } from 'vitest'
import { parseOptionsJson } from '../../src/config/json-options.ts'
import { Refusal } from '../../src/errors/refusal.ts'
import { rendered } from '../helpers/rendered.ts'

function refusalOf(text: string): string {
  try {
    parseOptionsJson(text)
  } catch (error) {
    if (error instanceof Refusal) return error.message
    throw error
  }
  throw new Error(`not refused: ${text}`)
}

describe('the options argument', () => {
  it.each([
    ['empty', ''],
    ['blank', '  '],
    ['truncated', '{"source":"/a"'],
    ['with an extra comma', '{"source":"/a",}'],
    ['with single quotes', "{'source':'/a'}"],
    ['two documents', '{}{}'],
    ['with text after it', '{} x'],
    ['with a byte order mark', '\ufeff{}'],
    ['with a raw newline in a string', '{"source":"a\nb"}'],
  ])('an unparsable options argument is refused as no JSON: %s', (_what, text) => {
    expect(refusalOf(text)).toBe(
      'the options are not JSON: kubelet passes one JSON object of strings as the last argument',
    )
  })

  it.each([
    ['null', 'null'],
    ['an array', '[]'],
    ['an array', '[{"source":"/a"}]'],
    ['a string', '"{}"'],
    ['a number', '7'],
    ['a boolean', 'true'],
  ])('an options argument that is %s instead of an object is refused with its type: %s', (kind, text) => {
    expect(refusalOf(text)).toBe(
      `the options are ${kind}: kubelet passes one JSON object of strings as the last argument`,
    )
  })

  it.each([
    ['{"kubernetes.io/secret/password":"aHVudGVyMg=="'],
    ['{"kubernetes.io/secret/password":"aHVudGVyMg==",}'],
    ['aHVudGVyMg=='],
    ['["aHVudGVyMg=="]'],
    ['"aHVudGVyMg=="'],
  ])('an unreadable options argument is never quoted, because it may contain a secret: %s', (text) => {
    expect(refusalOf(text)).not.toMatch(/aHV|secret|password/)
  })

  it('options are returned as pairs in the given order, values unchecked', () => {
    expect(parseOptionsJson('{"b":"1","a":2,"c":null,"d":["x"],"__proto__":"y"}')).toEqual({
      entries: [
        ['b', '1'],
        ['a', 2],
        ['c', null],
        ['d', ['x']],
        ['__proto__', 'y'],
      ],
      faults: [],
    })
  })
})

describe('a duplicate key', () => {
  it.each([
    ['plainly', '{"a":"1","a":"2"}', ['option "a" is given twice: keep one']],
    ['with the same value', '{"a":"1","a":"1"}', ['option "a" is given twice: keep one']],
    ['three times, and named once', '{"a":"1","a":"2","a":"3"}', ['option "a" is given twice: keep one']],
    ['with spaces before the colon', '{"a" \n:"1","a"\t:"2"}', ['option "a" is given twice: keep one']],
    ['in an escaped spelling', '{"a":"1","\\u0061":"2"}', ['option "a" is given twice: keep one']],
    ['both in escaped spellings', '{"\\u0041":"1","\\u0041":"2"}', ['option "A" is given twice: keep one']],
    ['with a quote in it', '{"a\\"b":"1","a\\"b":"2"}', ['option "a\\"b" is given twice: keep one']],
    ['next to values that are no strings', '{"a":1,"b":true,"a":2}', ['option "a" is given twice: keep one']],
    ['empty', '{"":"1","":"2"}', ['option "" is given twice: keep one']],
    ['__proto__', '{"__proto__":"1","__proto__":"2"}', ['option "__proto__" is given twice: keep one']],
    [
      'two of them',
      '{"a":"1","b":"1","b":"2","a":"2"}',
      ['option "b" is given twice: keep one', 'option "a" is given twice: keep one'],
    ],
  ])('a duplicate key is a fault that names it: %s', (_how, text, faults) => {
    expect(rendered(parseOptionsJson(text).faults)).toEqual(faults)
  })

  it.each([
    ['a value that looks like a key', '{"a":"\\"a\\":","b":"x\\":"}'],
    ['a value that ends in a backslash', '{"a":"\\\\","b":"\\\\"}'],
    ['a value equal to a key', '{"a":"b","b":"a"}'],
    ['keys that differ in case', '{"a":"1","A":"1"}'],
    ['keys that are numbers', '{"2":"1","1":"2"}'],
    ['an array of strings', '{"a":["a","a"],"b":"a"}'],
    ['a nested object, which is refused for itself', '{"a":{"b":"1"},"b":"2"}'],
    ['a nested object with a duplicate key', '{"a":{"b":"1","b":"2"}}'],
    ['an array of objects', '{"a":[{"b":"1"},{"b":"2"}],"b":"3"}'],
    ['keys next to a nested object', '{"a":{},"b":"1","b":"2"}'],
    ['an escaped newline before a quote', '{"a":"\\n\\":","b":"\\n\\":"}'],
  ])('no duplicate key is reported in %s', (_what, text) => {
    expect(parseOptionsJson(text).faults).toEqual([])
  })
})

describe('an argument of 1 MB', () => {
  const million = 1_000_000
  it.each([
    ['one long string', `{"a":"${'x'.repeat(million)}"}`, 1],
    ['one long string of escaped quotes', `{"a":"${'\\"'.repeat(million / 2)}"}`, 1],
    ['100,000 keys', `{${Array.from({ length: 100_000 }, (_, n) => `"k${n}":""`).join()}}`, 100_000],
    ['a million spaces between key and colon', `{"a"${' '.repeat(million)}:"x"}`, 1],
    ['strings followed by spaces', `{"a":[${Array.from({ length: 1000 }, () => `"x"${' '.repeat(1000)}`).join()}]}`, 1],
  ])(
    'of %s is parsed in linear time',
    (_what, text, count) => {
      const { entries, faults } = parseOptionsJson(text)
      expect(entries).toHaveLength(count)
      expect(faults).toEqual([])
    },
    60_000,
  )
})
