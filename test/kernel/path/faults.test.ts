import { describe, expect, it } from 'vitest'
import { checkSubPath } from '../../../src/kernel/path/open-sub-path.ts'
import { rendered } from '../../helpers/rendered.ts'

describe('the option subPath', () => {
  it.each(['a', 'a/b/c', '...', '..data', 'a..b/..c', '.hidden', 'a b', 'a\\b', 'é'.repeat(127)])(
    'accepts %j',
    (subPath) => {
      expect(checkSubPath(subPath)).toEqual([])
    },
  )

  it.each(['/', '/a', 'a/', 'a//b', './a', 'a/.', '.', '..', '../a', 'a/../b', 'a/..', 'a\0b'])(
    'is refused as no path inside a source: %j',
    (subPath) => {
      expect(rendered(checkSubPath(subPath))).toEqual([
        `option "subPath" is ${JSON.stringify(subPath)}: write a path inside the source, without a leading slash, "..", ".", "//" or a trailing slash`,
      ])
    },
  )

  it('is refused if the text is empty', () => {
    expect(rendered(checkSubPath(''))).toEqual([
      'option "subPath" is empty: name a part of the source, or leave subPath out',
    ])
  })

  it('is refused with each name that is longer than 255 bytes', () => {
    const faults = checkSubPath(`${'é'.repeat(128)}/a/${'x'.repeat(256)}`)
    expect(faults).toHaveLength(2)
    expect(rendered(faults[0])).toMatch(
      /^option "subPath" has the name "é+… .*: a name has at most 255 bytes, shorten it$/,
    )
  })

  it('is quoted in messages truncated and with control characters escaped', () => {
    const [fault] = checkSubPath(`/\u001b[31m${'x/'.repeat(2000)}x`)
    expect(rendered(fault)).toMatch(/^option "subPath" is "\/\\u001b\[31m[x/]+… \(4009 characters\): write/)
  })
})
