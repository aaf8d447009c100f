import { describe, expect, it } from 'vitest'
import { allowedFaults, isBelow } from '../../src/request/allowed-sources.ts'
import { DEFAULT_CONFIG } from '../../src/request/defaults.ts'
import type { Source } from '../../src/request/source.ts'

const faults = (source: Source, fsType: string, ...allowedSources: string[]) =>
  allowedFaults(source, fsType, { ...DEFAULT_CONFIG, allowedSources })
const isAllowed = (...of: Parameters<typeof faults>) => faults(...of).length === 0
const local = (path: string): Source => ({ type: 'local', path })
const from = (server: string, path: string): Source => ({ type: 'export', server, path })
const share = (server: string, path: string): Source => ({ type: 'share', server, path })
const text = (words: string): Source => ({ type: 'text', text: words })

describe('a directory of the node is allowed', () => {
  it.each<[string, string, boolean]>([
    ['/srv', '/srv', true],
    ['/srv', '/srv/a/b', true],
    ['/srv/', '/srv/a', true],
    ['/', '/etc', true],
    // By whole names.
    ['/srv', '/srvother', false],
    ['/srv/a', '/srv', false],
    ['/srv/a', '/srv/b', false],
    // What is an entry of another form.
    ['srv', '/srv', false],
    ['host:/srv', '/srv', false],
  ])('by %s: %s is so: %s', (entry, path, allowed) => {
    expect(isAllowed(local(path), 'bind', entry)).toBe(allowed)
    expect(isAllowed({ type: 'image', path }, 'ext4', '/nowhere', entry)).toBe(allowed)
  })
})

describe('a directory of a server is allowed', () => {
  it.each<[string, Source, boolean]>([
    ['nfs:/exports', from('nfs', '/exports/a'), true],
    ['nfs:/exports', from('NFS', '/exports'), true],
    ['nfs:/', from('nfs', '/any'), true],
    ['nfs:/exports', from('nfs', '/exportsother'), false],
    ['nfs:/exports', from('nfs2', '/exports'), false],
    ['nfs:/exports/A', from('nfs', '/exports/a'), false],
    // An export is no share, and neither is a directory of the node.
    ['//nfs/exports', from('nfs', '/exports'), false],
    ['/', from('nfs', '/exports'), false],
    ['nfs', from('nfs', '/exports'), false],
    ['//files/team', share('FILES', '/team/a'), true],
    ['//files', share('files', '/team'), true],
    ['//files/team', share('files', '/teams'), false],
    ['files:/team', share('files', '/team'), false],
  ])('by %s: %o is so: %s', (entry, source, allowed) => {
    expect(isAllowed(source, source.type === 'share' ? 'cifs' : 'nfs', entry)).toBe(allowed)
  })
})

describe("a program's text is allowed", () => {
  it.each<[string, string, boolean]>([
    ['bucket', 'bucket:/a', true],
    ['bucket', 'buckets:/a', false],
    ['remote:', 'remote:bucket/a', true],
    ['remote:', 'remotes:bucket', false],
    ['me@host:/home', 'me@host:/home/a', true],
    ['me@host:/home', 'you@host:/home/a', false],
    ['me@host', 'me@host:/home', true],
    // A prefix of the node's directories allows no text.
    ['/', 'me@host:/home', false],
    ['/srv:', '/srv:a', false],
    ['/srv', '/srv/a', true],
  ])('by %s: %s is so: %s', (entry, words, allowed) => {
    expect(isAllowed(text(words), 'fuse.sshfs', entry)).toBe(allowed)
  })

  it('as such where it looks like a server: its case and its form count', () => {
    const looks = from('Host', '/a')
    expect(isAllowed(looks, 'fuse.sshfs', 'Host:/a')).toBe(true)
    expect(isAllowed(looks, 'fuse.sshfs', 'host:/a')).toBe(false)
  })
})

it('a refusal names what the node allows of that form, and who can add to it', () => {
  const allowed = ['/srv', 'nfs:/a', '//files/b']
  expect(faults(local('/etc'), 'bind', ...allowed)).toEqual([
    expect.stringMatching(/"\/etc": this node allows sources below \/srv, nfs:\/a, .*; its administrator can add/),
  ])
  expect(faults(from('nfs', '/b'), 'nfs', ...allowed)).toEqual([
    expect.stringMatching(/"nfs:\/b": this node allows nfs from nfs:\/a; .* an entry like host:\/export to/),
  ])
  expect(faults(share('files', '/a'), 'cifs')).toEqual([
    expect.stringMatching(/this node allows cifs from no server; .* an entry like \/\/server\/share to/),
  ])
  expect(faults(local('/etc'), 'bind')).toEqual([expect.stringMatching(/allows sources below no directory/)])
})

it.each([
  ['/a/b', '/a', true],
  ['/a', '/a', true],
  ['/ab', '/a', false],
  ['/ab', '/', true],
])('%s lies below %s: %s', (path, prefix, below) => {
  expect(isBelow(path, prefix)).toBe(below)
})
