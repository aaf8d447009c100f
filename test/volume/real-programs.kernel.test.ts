import { describe, expect, it } from 'vitest'
import { cifsKind } from '../../src/volume/cifs.ts'
import { nfs4Kind, nfsKind } from '../../src/volume/nfs.ts'
import { readFailureMessage } from '../helper/fake-programs.ts'
import { addSkipReason, cannotMountWith } from '../helpers/needs.ts'
import { RemoteStage, secretsOf } from './remote.ts'

const cannot = cannotMountWith('mount.cifs', 'mount.nfs', 'strace')

/** Runs the node's mount.cifs, and writes down its mount(2). Without a server it fails there, or in it. */
const TRACED = 'exec strace -f -q -xx -s 4096 -e trace=mount -o $TOP/trace /usr/sbin/mount.cifs "$@"'

describe.skipIf(cannot !== '')(addSkipReason("the programs of Debian's packages, until mount(2)", cannot), () => {
  it.each([
    'plain',
    'a,b',
    ',,',
    '"quoted"',
    "it's",
    '!$`id`',
    'a=b',
    ' spaces around ',
    '#no comment',
    '%41',
    'back\\slash\\',
    '\t\r\x01\x7f',
    'password=eve',
    '',
    '\xff\xfe',
    'p'.repeat(511),
    ','.repeat(255),
  ])('mount.cifs passes the password %j to the kernel byte for byte', async (password) => {
    const stage = new RemoteStage(cifsKind)
    stage.programs.add('mount.cifs', TRACED)
    const secrets = secretsOf({ username: 'b o b', password: Buffer.from(password, 'latin1'), domain: 'W=G' })
    const mountOptions = ['vers=3.0', 'port=1', 'soft']
    const message = await readFailureMessage(stage.open({ source: '//127.0.0.1/share', mountOptions }, { secrets }))
    expect(message).toMatch(/^mount\.cifs failed with exit status 32: .*mount error/)
    const data = /mount\([^)]*, "([^"]*)"\)/.exec(stage.programs.read('trace'))?.[1] ?? ''
    const text = Buffer.from(data.replaceAll('\\x', ''), 'hex').toString('latin1')
    // The kernel reads two commas in a password as one.
    expect(text).toContain(`,user=b o b,domain=W=G,pass=${password.replaceAll(',', ',,')}`)
  })

  it.each([nfsKind, nfs4Kind])(
    "mount.$name accepts modekeep's arguments, and reports at once why the mount fails",
    async (kind) => {
      const message = await readFailureMessage(
        new RemoteStage(kind).open({ source: '127.0.0.1:/exports', mountOptions: ['vers=4.2', 'port=1', 'soft'] }),
      )
      expect(message).toMatch(/^mount\.nfs4? failed with exit status 32: mount\.nfs4?: /)
      expect(message).not.toMatch(/usage/i)
    },
  )
})
