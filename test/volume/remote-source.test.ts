import { describe, expect, it } from 'vitest'
import { renderFault } from '../../src/errors/fault.ts'
import { quoteValue } from '../../src/errors/refusal.ts'
import { findRemoteSourceFaults } from '../../src/volume/kind/source-path.ts'
import { requestFor } from './remote.ts'

function faults(source: string, subPath?: string): string[] {
  const form = source.startsWith('/') ? 'share' : 'export'
  const fsType = form === 'share' ? 'cifs' : 'nfs'
  return findRemoteSourceFaults(requestFor({ source, fsType, subPath }), form).map((fault) => renderFault(fault))
}

describe('a source on a server', () => {
  it.each([
    '-o:/a',
    'nfs',
    'nfs:',
    'nfs:a',
    ':/a',
    'a b:/c',
    'a,b:/c',
    'nfs:/a,b',
    'nfs:/a/../b',
    'nfs:/..',
    'nfs:/./a',
    'nfs:/a/',
    'nfs://a',
    'nfs:/a\n',
    'nfs:/a\0b',
    'nfs:/a\x7f',
    'nfs\n:/a',
    'nfs:/a\\b',
    'fe80::1:/a',
    '[x]:/a',
    '//',
    '//server',
    '//server/',
    '//server//a',
    '//server/..',
    '//server/a/../b',
    '//-s/a',
    '//s/a,uid=0',
    '//s/a\\b',
    '//s/a\n',
    '//s,x/a',
    '///a',
    '//s p/a',
    '/srv/a',
  ])('%j is refused', (source) => {
    const example = source.startsWith('/') ? '//server/share' : 'host:/export'
    expect(faults(source)).toEqual([
      `option "source" is ${quoteValue(source)}: write it like ${example}, without "..", "." or a comma`,
    ])
  })

  it('is required', () => {
    expect(faults('')).toEqual(['option "source" is missing: write it like host:/export, without "..", "." or a comma'])
  })

  it('has no subPath, as it can name the directory itself', () => {
    expect(faults('nfs:/a', 'b')).toEqual([
      'option "subPath" is "b": of nfs the source names the directory, add it there',
    ])
  })
})
