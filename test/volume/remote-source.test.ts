import { describe, expect, it } from 'vitest'
import { DEFAULT_CONFIG } from '../../src/request/defaults.ts'
import { remoteFaults } from '../../src/volume/remote/remote.ts'
import { requestFor } from './remote.ts'

function faults(source: string, allowedSources: string[], subPath: string | undefined = undefined): string[] {
  const form = source.startsWith('/') ? 'share' : 'export'
  const fsType = form === 'share' ? 'cifs' : 'nfs'
  return remoteFaults(requestFor({ source, fsType, subPath }), form, { ...DEFAULT_CONFIG, allowedSources })
}

describe('a source on a server', () => {
  it.each([
    ['nfs:/exports/a', 'nfs:/exports/a'],
    ['nfs:/exports/a', 'nfs:/exports'],
    ['nfs:/exports/a', 'nfs:/'],
    ['nfs:/', 'nfs:/'],
    ['NFS.example.com:/a b', 'nfs.EXAMPLE.com:/'],
    ['[fe80::1%eth0]:/a', '[fe80::1%eth0]:/a'],
    ['//server/share', '//server/share'],
    ['//server/share/a/b c', '//server/share/a'],
    ['//server/share', '//server'],
    ['//SERVER/share', '//server'],
    ['//::1/share', '//::1/share'],
  ])('%s is allowed by %s', (source, allowed) => {
    expect(faults(source, ['/srv', allowed])).toEqual([])
  })

  it.each([
    ['nfs:/exports/a', '/'],
    ['nfs:/exports/ab', 'nfs:/exports/a'],
    ['nfs:/exports', 'nfs:/exports/a'],
    ['nfs2:/exports', 'nfs:/exports'],
    ['nfs.evil:/exports', 'nfs:/'],
    ['nfs:/Exports', 'nfs:/exports'],
    ['nfs:/share', '//nfs/share'],
    ['//server/share', '/'],
    ['//server/share', '/server/share'],
    ['//server/shares', '//server/share'],
    ['//server2/share', '//server'],
    ['//server/share', 'server:/share'],
  ])('%s is not allowed by %s', (source, allowed) => {
    expect(faults(source, [allowed])).toEqual([expect.stringContaining('to allowedSources in the node')])
  })

  it('is refused by default, and the administrator is told what to write', () => {
    expect(faults('nfs:/exports/a', DEFAULT_CONFIG.allowedSources as string[])).toEqual([
      'option "source" is "nfs:/exports/a": this node allows nfs from no server; its administrator can add an entry like host:/export to allowedSources in the node\'s modekeep configuration',
    ])
    expect(faults('//b/c', ['//a/b', '/srv', 'nfs:/a'])).toEqual([
      'option "source" is "//b/c": this node allows cifs from //a/b; its administrator can add an entry like //server/share to allowedSources in the node\'s modekeep configuration',
    ])
  })

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
  ])('%j is no such source', (source) => {
    const example = source.startsWith('/') ? '//server/share' : 'host:/export'
    expect(faults(source, ['/', '//server', 'nfs:/'])).toEqual([
      `option "source" is ${JSON.stringify(source)}: write it like ${example}, without "..", "." or a comma`,
    ])
  })

  it('must be there', () => {
    expect(faults('', [])).toEqual([
      'option "source" is missing: write it like host:/export, without "..", "." or a comma',
    ])
  })

  it('has no part, as it can name that itself', () => {
    expect(faults('nfs:/a', ['nfs:/'], 'b')).toEqual([
      'option "subPath" is "b": of nfs the source names the directory, add it there',
    ])
  })
})
