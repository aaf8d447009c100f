import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { describe, expect, it } from 'vitest'
import { SECRET_FILE_PATH } from '../../src/kernel/helpers.ts'
import { cifsKind, formatCifsCredentials } from '../../src/volume/cifs.ts'
import { nfs4Kind } from '../../src/volume/nfs.ts'
import { FakePrograms, readFailureMessage } from '../helper/fake-programs.ts'
import { FS_GROUP } from '../helpers/mount-records.ts'
import { addSkipReason, cannotMountWith } from '../helpers/needs.ts'
import { kernelHas, RemoteStage, secretsOf } from './remote.ts'
import { startGanesha, startSamba } from './servers.ts'

const PASSWORD = 'a,b"c!$d=e f#g%41\\'
const SECRETS = secretsOf({ username: 'root', password: PASSWORD })

/** Cases of the other branch are not there: the title says which of the two this is. */
const none = () => {}
const onKernel = (kind: string): ((name: string, run: () => Promise<void>) => void) => (kernelHas(kind) ? it : none)
const withoutKernel = (kind: string): ((name: string, run: () => Promise<void>) => void) =>
  kernelHas(kind) ? none : it

function title(what: string, kind: string, cannot: string): string {
  if (cannot !== '') return addSkipReason(what, cannot)
  return kernelHas(kind) ? `${what}, mounted by the kernel` : `${what}, without a mount, as this kernel has no ${kind}`
}

const noSamba = cannotMountWith('smbd', 'smbclient', 'mount.cifs')
// Its module for a local file system is no program, and comes with nothing else.
const noGanesha = cannotMountWith('ganesha.nfsd', 'mount.nfs4').replace(/install nfs-ganesha\b/, '$& nfs-ganesha-vfs')

describe.skipIf(noSamba !== '')(title('a share of a real samba', 'cifs', noSamba), () => {
  it('a real samba server accepts the credentials that modekeep writes through the inherited descriptor', async () => {
    const { port, top } = await startSamba(PASSWORD)
    const secretFile = formatCifsCredentials(SECRETS)
    if (!secretFile) throw new Error('there are no credentials')
    const args = [
      '-s',
      `${top}/smb.conf`,
      '-p',
      String(port),
      '-A',
      SECRET_FILE_PATH,
      '//127.0.0.1/share',
      '-c',
      'mkdir made',
    ]
    await new FakePrograms().run('smbclient', { args, secretFile, secrets: [...SECRETS.values()] })
    expect(fs.readdirSync(`${top}/shared`)).toEqual(['made'])
  })

  onKernel('cifs')("shows its files with the pod's group, and can be written", async () => {
    const { port, shared } = await startSamba(PASSWORD)
    const stage = new RemoteStage(cifsKind)
    const mountOptions = ['vers=3.0', `port=${port}`]
    const { gid, mode } = await stage.open(
      { source: '//127.0.0.1/share', mountOptions },
      { secrets: SECRETS, group: 2000 },
    )
    expect([gid, mode & 0o777]).toEqual([2000, 0o770])
    expect(fs.readdirSync(shared)).toEqual([])
  })

  onKernel('cifs')("with a wrong password is refused with the server's message", async () => {
    const { port } = await startSamba(PASSWORD)
    const secrets = secretsOf({ username: 'root', password: 'wrong-password' })
    const mountOptions = ['vers=3.0', `port=${port}`]
    const message = await readFailureMessage(
      new RemoteStage(cifsKind).open({ source: '//127.0.0.1/share', mountOptions }, { secrets }),
    )
    expect(message).toMatch(/mount error\(13\): Permission denied/)
    expect(message).not.toContain('wrong-password')
  })
})

describe.skipIf(noGanesha !== '')(title('an export of a real nfs-ganesha', 'nfs4', noGanesha), () => {
  const source = '127.0.0.1:/export'

  withoutKernel('nfs4')(
    'an export of nfs-ganesha is requested by mount.nfs4, which reports that this kernel does not support NFS',
    async () => {
      const { port } = await startGanesha('no_root_squash')
      const message = await readFailureMessage(
        new RemoteStage(nfs4Kind).open({ source, mountOptions: [`port=${port}`] }),
      )
      expect(message).toMatch(
        /^mount\.nfs4 failed with exit status 32: mount\.nfs4?: .*(No such device|not supported|not configured)/,
      )
    },
  )

  onKernel('nfs4')('is mounted, and walked if root is not squashed', async () => {
    const { port, shared } = await startGanesha('no_root_squash')
    execFileSync('chgrp', ['1234', shared])
    const stage = new RemoteStage(nfs4Kind)
    const request = { source, mountOptions: [`port=${port}`], fsGroup: FS_GROUP, ownership: 'walk' } as const
    expect((await stage.open(request)).gid).toBe(1234)
  })

  onKernel('nfs4')('that squashes root is refused before a walk begins', async () => {
    const { port } = await startGanesha('root_squash')
    const request = { source, mountOptions: [`port=${port}`], fsGroup: FS_GROUP, ownership: 'walk' } as const
    expect(await readFailureMessage(new RemoteStage(nfs4Kind).open(request))).toContain('squashes root')
  })
})
