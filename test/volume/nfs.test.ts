import { describe, expect, it } from 'vitest'
import { Refusal } from '../../src/errors/refusal.ts'
import { SystemError } from '../../src/kernel/host.ts'
import { linuxHost } from '../../src/kernel/linux/index.ts'
import { nfs4Kind, nfsKind } from '../../src/volume/nfs.ts'
import { readFailureMessage } from '../helper/fake-programs.ts'
import { FS_GROUP, NO_FS_GROUP } from '../helpers/mount-records.ts'
import { addSkipReason, cannotMountWith } from '../helpers/needs.ts'
import { isRoot } from '../helpers/stage.ts'
import { MOUNTING, RemoteStage, runsAgainst } from './remote.ts'

const SOURCE = 'server:/exports/a'

describe('an NFS export', () => {
  it.each([
    'vers=4.2',
    'nfsvers=3',
    'minorversion=1',
    'proto=tcp6',
    'port=2049',
    'mountport=20048',
    'hard',
    'soft',
    'timeo=600',
    'retrans=2',
    'rsize=1048576',
    'wsize=65536',
    'nolock',
    'lock',
    'sec=sys',
    'ac',
    'noac',
    'actimeo=0',
    'nconnect=16',
    'xprtsec=none',
    'xprtsec=tls',
    'xprtsec=mtls',
    'lookupcache=positive',
    'local_lock=flock',
    'noresvport',
    'fsc',
    'ro',
    'noexec',
    'noatime',
  ])('accepts the option %s', (option) => {
    expect(new RemoteStage(nfsKind).faults({ source: SOURCE, mountOptions: [option] })).toEqual([])
  })

  it.each([
    ['vers=5', 'it like vers=4.2 or vers=4.1 or vers=4.0 or vers=4 or vers=3'],
    ['vers=4x2', 'it like vers=4.2 or vers=4.1 or vers=4.0 or vers=4 or vers=3'],
    ['sec=sys:krb5', 'it like sec=sys or sec=krb5 or sec=krb5i or sec=krb5p or sec=none'],
    ['timeo=-1', 'it like timeo=600'],
    ['nconnect=4 ', 'it like nconnect=4'],
    ['hard=yes', 'it like hard'],
  ])('refuses %s', (option, way) => {
    expect(new RemoteStage(nfsKind).faults({ source: SOURCE, mountOptions: [option] })).toEqual([
      `option "mountOptions" has "${option}": write ${way}`,
    ])
  })

  it.each([
    ['tcp', 'instead of tcp write proto=tcp'],
    ['intr', 'leave intr out, as the kernel ignores it'],
    ['_netdev', 'leave _netdev out, as it tells the boot of a node when to mount'],
    ['retry=5', 'leave retry out, as kubelet tries again by itself'],
  ])('refuses %s and names its equivalent or the reason', (option, remedy) => {
    expect(new RemoteStage(nfsKind).faults({ source: SOURCE, mountOptions: [option] })).toEqual([
      expect.stringMatching(new RegExp(`^option "mountOptions" has \\["${option}"\\]: .*; ${remedy}$`)),
    ])
  })

  it('accepts xprtsec=mtls, which authenticates the node, only if a rule names it with its value', () => {
    const stage = new RemoteStage(nfsKind)
    const options = ['xprtsec=none', 'xprtsec=tls', 'xprtsec=mtls']
    expect(options.map((option) => stage.naming(option))).toEqual(['none', 'none', 'value'])
    expect(stage.faults({ source: SOURCE, mountOptions: ['xprtsec=ssl'] })).toEqual([
      'option "mountOptions" has "xprtsec=ssl": write it like xprtsec=none or xprtsec=tls or xprtsec=mtls',
    ])
  })

  it.each(['sec=krb5', 'sec=krb5i', 'sec=krb5p'])('accepts %s only if a rule names it with its value', (option) => {
    const stage = new RemoteStage(nfsKind)
    expect(stage.faults({ source: SOURCE, mountOptions: [option, 'hard'] })).toEqual([])
    expect([stage.naming(option), stage.naming('hard')]).toEqual(['value', 'none'])
  })

  it.each(['bg', 'addr=10.0.0.1', 'mounthost=other', 'clientaddr=10.0.0.1', 'retry=10000', 'remount', 'context=x'])(
    'refuses %s as unknown, as it would name another server, or wait in the background',
    (option) => {
      expect(new RemoteStage(nfs4Kind).faults({ source: SOURCE, mountOptions: [option] })).toEqual([
        expect.stringContaining(`option "mountOptions" has ["${option}"]: nfs4 takes ro, rw, `),
      ])
    },
  )
})

describe.skipIf(!isRoot)(addSkipReason(`a mounted NFS export, ${runsAgainst('nfs')}`, cannotMountWith()), () => {
  it.each([nfsKind, nfs4Kind])(
    'an NFS export passes exactly the expected arguments and environment to mount.$name',
    async (kind) => {
      const stage = new RemoteStage(kind)
      stage.programs.add(`mount.${kind.name}`, MOUNTING)
      const { mode } = await stage.open({
        source: SOURCE,
        mountOptions: ['vers=4.2', 'noexec', 'hard'],
        readOnly: true,
      })
      expect(mode & 0o777).toBe(0o750)
      const [source, directory, ...rest] = stage.argv()
      expect(source).toBe(SOURCE)
      expect(directory).toMatch(new RegExp(`^${stage.stateDir}/`))
      expect(rest).toEqual(['-o', 'vers=4.2,hard,nosuid,nodev,retry=0,sec=sys,ro'])
      expect(stage.programs.read('environment')).toContain('LC_ALL=C\0')
    },
  )

  it('an NFS export is refused with the message of a failing mount.nfs', async () => {
    const stage = new RemoteStage(nfsKind)
    stage.programs.add('mount.nfs', 'echo "mount.nfs: access denied by server while mounting $1" >&2; exit 32')
    expect(await readFailureMessage(stage.open({ source: SOURCE }))).toBe(
      'mount.nfs failed with exit status 32: mount.nfs: access denied by server while mounting server:/exports/a',
    )
  })

  describe('of a server that squashes root', () => {
    const squashed = {
      ...linuxHost.inodes,
      chown: () => {
        throw new SystemError('fchownat', 'EPERM', '5')
      },
    }

    function open(stage: RemoteStage, request: Parameters<RemoteStage['open']>[0]) {
      stage.programs.add('mount.nfs', MOUNTING)
      const making = stage.making({})
      return stage.open({ source: SOURCE, ...request }, { host: { ...making.host, inodes: squashed } })
    }

    it.each(['walk', 'auto'] as const)('is refused before a walk begins: %s', async (ownership) => {
      const work = open(new RemoteStage(nfsKind), { fsGroup: FS_GROUP, ownership })
      await expect(work).rejects.toThrow(Refusal)
      expect(await readFailureMessage(work)).toBe(
        'the server of server:/exports/a squashes root, so this node cannot give group 2000 to its files: ' +
          'export it with no_root_squash, or leave "ownership" out and give them the group on the server',
      )
    })

    it('an export that the server has read-only is refused before a walk begins', async () => {
      const readOnly = {
        ...linuxHost.inodes,
        chown: () => {
          throw new SystemError('fchownat', 'EROFS', '5')
        },
      }
      const stage = new RemoteStage(nfsKind)
      stage.programs.add('mount.nfs', MOUNTING)
      const { host } = stage.making({})
      const request = { source: SOURCE, fsGroup: FS_GROUP, ownership: 'walk' } as const
      expect(await readFailureMessage(stage.open(request, { host: { ...host, inodes: readOnly } }))).toBe(
        'the server of server:/exports/a exports it read-only, so this node cannot give group 2000 to its files: ' +
          'export it for writing, or leave "ownership" out and give them the group on the server',
      )
    })

    it.each([
      ['without a group', { fsGroup: NO_FS_GROUP, ownership: 'walk' }],
      ['without a walk', { fsGroup: FS_GROUP, ownership: 'none' }],
      ['read-only', { fsGroup: FS_GROUP, ownership: 'walk', readOnly: true }],
      ['with the group already', { fsGroup: { ...FS_GROUP, groupId: 0 }, ownership: 'walk' }],
    ] as const)('is mounted %s', async (_how, request) => {
      await open(new RemoteStage(nfsKind), request)
    })
  })
})
