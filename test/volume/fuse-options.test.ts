import { describe, expect, it } from 'vitest'
import type { RequiredOptionNaming } from '../../src/config/allow.ts'
import { DEFAULT_CONFIG } from '../../src/config/defaults.ts'
import { parseSource } from '../../src/config/source.ts'
import { renderFault } from '../../src/errors/fault.ts'
import { findVolumeKind } from '../../src/volume/index.ts'
import { findRequiredOptionNaming } from '../../src/volume/kind/options.ts'

const SOURCES: Record<string, string> = {
  sshfs: 'me@host:/a',
  bindfs: '/srv/a',
  squashfuse: '/srv/a',
  other: 'bucket:/data/x',
}

function faults(program: string, options: string): string[] {
  const request = {
    source: parseSource(SOURCES[program]),
    fsType: `fuse.${program}`,
    mountOptions: options.split(',').filter(Boolean),
    readOnly: false,
    ownership: 'none' as const,
  }
  const kind = findVolumeKind(request.fsType)
  if (!kind) throw new Error('no kind')
  return kind.faults(request, DEFAULT_CONFIG).map((fault) => renderFault(fault))
}

function naming(program: string, option: string): RequiredOptionNaming {
  return findRequiredOptionNaming(findVolumeKind(`fuse.${program}`)?.optionRules() ?? new Map(), option)
}

describe('the options of FUSE programs', () => {
  it.each([
    ['sshfs', 'port=2222,ServerAliveInterval=15,reconnect,gid=1000,noexec'],
    ['bindfs', 'force-group=100,chown-ignore,multithreaded'],
    ['squashfuse', 'offset=4096,ro'],
    ['other', 'gid=2,attr_timeout=1.5,kernel_cache'],
  ])('are accepted for %s if they are harmless: %s', (program, options) => {
    expect(faults(program, options)).toEqual([])
  })

  it.each([
    ['sshfs', 'uid=1000'],
    ['sshfs', 'umask=007'],
    ['bindfs', 'force-user=1000'],
    ['bindfs', 'perms=a+rwx'],
    ['bindfs', 'map=1000/2000:@100/@200'],
    ['bindfs', 'create-as-user'],
  ])('that let a user pass for another must be named by a rule, for %s: %s', (program, options) => {
    expect(faults(program, options)).toEqual([])
    expect(naming(program, options)).toBe('name')
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
    ['other', 'umask=9'],
  ])('that are unsafe, unknown or invalid are refused for %s: %s', (program, options) => {
    expect(faults(program, options)).toEqual([expect.stringMatching(/^option "mountOptions" has/)])
  })

  it('of an unknown program are passed on if a rule names them', () => {
    expect(faults('other', 'passwd_file=/x,allow-root,no_default_permissions,dev')).toEqual([])
    for (const option of ['passwd_file=/x', 'allow-root', 'no_default_permissions', 'dev']) {
      expect(naming('other', option)).toBe('name')
    }
  })
})

describe('a FUSE fsType', () => {
  it.each(['fuse.', 'fuse', 'fuse3.sshfs', 'fuse.../x', 'fuse.a/b', 'fuse.-o', 'fuse.A'])(
    'is not parsed from %s',
    (fsType) => {
      expect(findVolumeKind(fsType)).toBeUndefined()
    },
  )
})

describe('a source in the format of its program', () => {
  function faultsOf(source: string): string[] {
    const request = { source: parseSource(source), fsType: 'fuse.s3fs', mountOptions: [], readOnly: false }
    const faults = findVolumeKind('fuse.s3fs')?.faults({ ...request, ownership: 'none' }, DEFAULT_CONFIG)
    return faults?.map((fault) => renderFault(fault)) ?? ['no kind']
  }

  it.each(['bucket/../other', 'bucket/..', 'remote:..', 'remote:../x', 'a/./b', '-o', 'a\nb'])(
    'is refused if it is %j',
    (source) => {
      expect(faultsOf(source)).toEqual([expect.stringMatching(/^option "source" is .* write no/)])
    },
  )

  it('is required', () => {
    expect(faultsOf('')).toEqual(['option "source" is missing: write what the program is to show'])
  })
})
