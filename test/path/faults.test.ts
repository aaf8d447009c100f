import { describe, expect, it } from 'vitest'
import { checkSubPath } from '../../src/path/open-sub-path.ts'
import { rendered } from '../helpers/rendered.ts'

describe('the text of a subPath', () => {
  it.each(['a', 'a/b/c', '...', '..data', 'a..b/..c', '.hidden', 'a b', 'a\\b', 'é'.repeat(127)])(
    'may be %j',
    (subPath) => {
      expect(checkSubPath(subPath)).toEqual([])
    },
  )

  it.each(['/', '/a', 'a/', 'a//b', './a', 'a/.', '.', '..', '../a', 'a/../b', 'a/..', 'a\0b'])(
    'is no path inside a source if it is %j',
    (subPath) => {
      expect(rendered(checkSubPath(subPath))).toEqual([
        `option "subPath" is ${JSON.stringify(subPath)}: write a path inside the source, without a leading slash, "..", ".", "//" or a trailing slash`,
      ])
    },
  )

  it('is to be left out rather than empty', () => {
    expect(rendered(checkSubPath(''))).toEqual([
      'option "subPath" is empty: name a part of the source, or leave subPath out',
    ])
  })

  it('has no name that no file system keeps: each is told, counted in bytes', () => {
    const faults = checkSubPath(`${'é'.repeat(128)}/a/${'x'.repeat(256)}`)
    expect(faults).toHaveLength(2)
    expect(rendered(faults[0])).toMatch(
      /^option "subPath" has the name "é+… .*: a name has at most 255 bytes, shorten it$/,
    )
  })

  it('is shown cut and with its control characters escaped', () => {
    const [fault] = checkSubPath(`/\u001b[31m${'x/'.repeat(2000)}x`)
    expect(rendered(fault)).toMatch(/^option "subPath" is "\/\\u001b\[31m[x/]+… \(4009 characters\): write/)
  })
})
