import { describe, expect, it } from 'vitest'
import { allowedFaults } from '../../src/request/allowed-sources.ts'
import { DEFAULT_CONFIG, type NodeConfig } from '../../src/request/defaults.ts'
import { parseSource } from '../../src/request/source.ts'
import { kindOf } from '../../src/volume/index.ts'

const config: NodeConfig = { ...DEFAULT_CONFIG, allowedSources: ['/srv', 'me@host:/', 'bucket:/data'] }
const SOURCES: Record<string, string> = {
  sshfs: 'me@host:/a',
  bindfs: '/srv/a',
  squashfuse: '/srv/a',
  other: 'bucket:/data/x',
}

function faults(program: string, options: string, over: Partial<NodeConfig> = {}): string[] {
  const request = {
    source: parseSource(SOURCES[program]),
    fsType: `fuse.${program}`,
    mountOptions: options.split(',').filter(Boolean),
    readOnly: false,
    ownership: 'none' as const,
  }
  const kind = kindOf(request.fsType)
  if (!kind) throw new Error('no kind')
  return kind.faults(request, { ...config, ...over })
}

describe('the options of FUSE programs', () => {
  it.each([
    ['sshfs', 'port=2222,ServerAliveInterval=15,reconnect,gid=1000,noexec'],
    ['bindfs', 'force-group=100,chown-ignore,multithreaded'],
    ['squashfuse', 'offset=4096,ro'],
    ['other', 'gid=2,attr_timeout=1.5,kernel_cache'],
  ])('are allowed to %s where they are harmless: %s', (program, options) => {
    expect(faults(program, options)).toEqual([])
  })

  it.each([
    ['sshfs', 'uid=1000'],
    ['sshfs', 'umask=007'],
    ['bindfs', 'force-user=1000'],
    ['bindfs', 'perms=a+rwx'],
    ['bindfs', 'map=1000/2000:@100/@200'],
    ['bindfs', 'create-as-user'],
  ])('that let a user pass for another have to be named by the node, for %s: %s', (program, options) => {
    expect(faults(program, options)).toEqual([expect.stringContaining('not allowed on this node')])
    const name = options.split('=', 1)[0] ?? ''
    expect(faults(program, options, { allowedMountOptions: { [`fuse.${program}`]: [name] } })).toEqual([])
  })

  it.each([
    ['sshfs', 'ssh_command=x'],
    ['sshfs', 'idmap=file'],
    ['sshfs', 'delay_connect'],
    ['sshfs', 'port=22 -oProxyCommand=x'],
    ['bindfs', 'map-passwd=/etc/passwd'],
    ['bindfs', 'resolve-symlinks'],
    ['bindfs', 'map=/etc/passwd'],
    ['squashfuse', 'timeout=1'],
    ['squashfuse', 'fsname=x'],
    ['other', 'anything'],
    ['other', 'no_default_permissions'],
    ['other', 'umask=9'],
    ['other', 'dev'],
  ])('are refused to %s otherwise: %s', (program, options) => {
    expect(faults(program, options)).toEqual([expect.stringMatching(/^option "mountOptions" has/)])
  })

  it('of an unknown program can be added by the node, of a known one only taken away', () => {
    const named = (program: string, ...options: string[]) => ({ allowedMountOptions: { [`fuse.${program}`]: options } })
    expect(faults('other', 'passwd_file=/x,allow-root', named('other', 'passwd_file', 'allow-root'))).toEqual([])
    expect(faults('other', 'passwd_filex', named('other', 'passwd_file'))).toHaveLength(1)
    expect(faults('sshfs', 'ssh_command=x', named('sshfs', 'ssh_command'))).toHaveLength(1)
    expect(faults('sshfs', 'reconnect', named('sshfs', 'port'))).toHaveLength(1)
  })
})

describe('a FUSE fsType', () => {
  it.each(['fuse.', 'fuse', 'fuse3.sshfs', 'fuse.../x', 'fuse.a/b', 'fuse.-o', 'fuse.A'])('is not %s', (fsType) => {
    expect(kindOf(fsType)).toBeUndefined()
  })
})

describe('a source that only its program understands', () => {
  function faultsOf(source: string, ...allowedSources: string[]): string[] {
    const request = { source: parseSource(source), fsType: 'fuse.s3fs', mountOptions: [], readOnly: false }
    return kindOf('fuse.s3fs')?.faults({ ...request, ownership: 'none' }, { ...config, allowedSources }) ?? ['no kind']
  }

  it.each([
    ['bucket', 'bucket'],
    ['bucket', 'bucket/logs'],
    ['bucket', 'bucket:/logs'],
    ['bucket:/logs', 'bucket:/logs/today'],
    ['remote:', 'remote:'],
    ['remote:', 'remote:bucket/logs'],
    ['remote:bucket', 'remote:bucket'],
    ['remote:bucket', 'remote:bucket/logs'],
    ['user@host', 'user@host:/home'],
  ])('is allowed by %s: %s', (entry, source) => {
    expect(faultsOf(source, '/srv', entry)).toEqual([])
  })

  it.each([
    ['bucket', 'bucket2'],
    ['bucket', 'other'],
    ['bucket:/logs', 'bucket:/logs:x'],
    ['bucket:/logs', 'bucket'],
    ['remote:bucket', 'remote:bucket2'],
    ['remote:bucket', 'remote:bucket:x'],
    ['remote:', 'remote2:x'],
    ['remote', 'remote,option=x:bucket'],
    ['/', 'bucket'],
    ['/srv', 'srv'],
  ])('is not allowed by %s: %s', (entry, source) => {
    expect(faultsOf(source, entry)).toEqual([
      expect.stringMatching(/^option "source" is .*: this node allows sources below .*allowedSources/),
    ])
  })

  it.each(['bucket/../other', 'bucket/..', 'remote:..', 'remote:../x', 'a/./b', '-o', 'a\nb'])(
    'is not %j',
    (source) => {
      expect(faultsOf(source, 'bucket', 'remote:')).toEqual([expect.stringMatching(/^option "source" is .* write no/)])
    },
  )

  it('has to be there', () => {
    expect(faultsOf('', 'bucket')).toEqual(['option "source" is missing: write what the program is to show'])
  })

  it('is compared as it is written, whatever else the node allows', () => {
    expect(allowedFaults(parseSource('/srv/a'), 'fuse.s3fs', { ...config, allowedSources: ['srv'] })).toHaveLength(1)
  })
})

describe('an allowed source', () => {
  it.each([
    ['/srv/a', true],
    ['/srv', true],
    ['/srva', false],
    ['me@host:/', true],
    ['me@host:/a/b', true],
    ['me@host2:/a', false],
    ['you@host:/a', false],
    ['bucket:/data/x', true],
    ['bucket:/database', false],
  ])('is %s: %s', (source, expected) => {
    expect(allowedFaults(parseSource(source), 'fuse.sshfs', config)).toHaveLength(expected ? 0 : 1)
  })

  it('is every path, and nothing remote, where the root is one', () => {
    const faultsOf = (source: string) =>
      allowedFaults(parseSource(source), 'fuse.sshfs', { ...config, allowedSources: ['/'] })
    expect(faultsOf('/etc')).toEqual([])
    expect(faultsOf('me@host:/')).toHaveLength(1)
  })
})
