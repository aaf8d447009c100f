import { describe, expect, it } from 'vitest'
import { cifsKind, formatCifsCredentials } from '../../src/volume/cifs.ts'
import { readFailureMessage } from '../helper/fake-programs.ts'
import { addSkipReason, cannotMountWith } from '../helpers/needs.ts'
import { isRoot } from '../helpers/stage.ts'
import { MOUNTING, RemoteStage, runsAgainst, secretsOf } from './remote.ts'

const SOURCE = '//server/share/a b'
const USER = { username: 'bob', password: 'x' }

function credentials(values: Record<string, string | Buffer>): string | undefined {
  const bytes = formatCifsCredentials(secretsOf(values))
  return bytes && Buffer.from(bytes).toString('latin1')
}

describe('credentials', () => {
  it.each([
    'a,b',
    '"quoted"',
    "it's",
    '!$`id`',
    'a=b',
    ' leading and trailing ',
    '#no comment',
    '%20',
    'back\\slash',
    '\t\r\x01',
    '',
    'username=eve',
    'p'.repeat(511),
    ','.repeat(255),
  ])('have the password %j unchanged', (password) => {
    expect(credentials({ username: 'bob', password })).toBe(`username=bob\npassword=${password}\n`)
  })

  it('may have a domain and bytes that are not valid UTF-8', () => {
    const password = Buffer.from([0xff, 0xfe, 0x80])
    expect(credentials({ username: ' b o b ', password, domain: 'W G' })).toBe(
      'username= b o b \npassword=\xff\xfe\x80\ndomain=W G\n',
    )
  })

  it.each([
    ['username', 'a\nb', 'has a newline, which no CIFS credential can: write it without (printf instead of echo)'],
    ['password', 'hunter2\n', 'has a newline, which no CIFS credential can: write it without (printf instead of echo)'],
    ['domain', 'a\0b', 'has a NUL byte, which no CIFS credential can: write it without'],
    ['username', 'bob,uid=0', 'has a comma, which mount.cifs cannot pass on: write it without'],
    ['domain', 'WG,ip=10.0.0.1', 'has a comma, which mount.cifs cannot pass on: write it without'],
    ['username', '', 'is empty: write the name of a user'],
    ['username', 'u'.repeat(256), 'is too long: mount.cifs takes 255 bytes'],
    ['password', 'p'.repeat(512), 'is too long: mount.cifs takes 511 bytes, a comma counted twice'],
    ['password', ','.repeat(256), 'is too long: mount.cifs takes 511 bytes, a comma counted twice'],
  ])('with a %s that the format does not permit are refused without showing it: %j', (key, value, fault) => {
    expect(() => credentials({ ...USER, [key]: value })).toThrow(`the secret's "${key}" ${fault}`)
    try {
      credentials({ ...USER, [key]: value })
    } catch (error) {
      if (value !== '') expect((error as Error).message).not.toContain(value.trim())
    }
  })

  it('must be complete or absent', () => {
    expect(() => credentials({ username: 'bob' })).toThrow('the secret has no key "password": add it')
    expect(() => credentials({ domain: 'WG' })).toThrow('the secret has no key "username": add it')
    expect(credentials({ other: 'x' })).toBeUndefined()
  })
})

describe('a CIFS share', () => {
  const faults = (...mountOptions: string[]) => new RemoteStage(cifsKind).faults({ source: SOURCE, mountOptions })

  it.each([
    'vers=3.1.1',
    'sec=ntlmssp',
    'seal',
    'iocharset=utf8',
    'cache=strict',
    'nobrl',
    'mfsymlinks',
    'noserverino',
    'uid=1000',
    'gid=2000',
    'forceuid',
    'forcegid',
    'noperm',
    'file_mode=0660',
    'dir_mode=0770',
    'port=445',
    'guest',
    'actimeo=1',
    'ro',
  ])('accepts the option %s', (option) => {
    expect(faults(option)).toEqual([])
  })

  it.each([
    ['vers=3.11', 'instead of vers=3.11 write vers=3.1.1'],
    ['idsfromsid', 'instead of idsfromsid write uid and gid'],
    ['modefromsid', 'instead of modefromsid write file_mode and dir_mode'],
    ['multiuser', 'leave multiuser out, as it needs credentials in the keyrings'],
    ['cruid=1000', 'leave cruid out, as it names a user of the node'],
    ['_netdev', 'leave _netdev out, as it tells the boot of a node when to mount'],
  ])('refuses %s and names its equivalent or the reason', (option, remedy) => {
    expect(faults(option)).toEqual([expect.stringContaining(`; ${remedy}`)])
  })

  it.each(['sec=krb5', 'sec=krb5i'])("accepts %s only if the node's rule names it with its value", (option) => {
    const stage = new RemoteStage(cifsKind)
    expect(stage.faults({ source: SOURCE, mountOptions: [option] })).toEqual([])
    expect([stage.naming(option), stage.naming('sec=ntlmssp')]).toEqual(['value', 'none'])
  })

  it.each([
    'ip=10.0.0.1',
    'addr=10.0.0.1',
    'unc=\\\\other\\share',
    'prefixpath=x',
    'servern=x',
    'netbiosname=x',
    'domainauto',
  ])('refuses %s as unknown, as it would lead to another server', (option) => {
    expect(faults(option)).toEqual([expect.stringContaining('cifs takes ro, rw, ')])
  })

  it.each(['username', 'user', 'password', 'pass', 'password2', 'domain', 'credentials'])(
    'needs %s in a Secret, and never shows the value in mountOptions',
    (name) => {
      expect(faults(`${name}=hunter2`, 'seal')).toEqual([
        `option "mountOptions" has ${name}: put username, password and domain into a secret and name it in secretRef`,
      ])
    },
  )
})

describe.skipIf(!isRoot)(addSkipReason(`a mounted CIFS share, ${runsAgainst('cifs')}`, cannotMountWith()), () => {
  function openStage(): RemoteStage {
    const stage = new RemoteStage(cifsKind)
    stage.programs.add('mount.cifs', MOUNTING)
    return stage
  }

  it('a CIFS share passes exactly the expected arguments to mount.cifs, and writes credentials to no file of the node', async () => {
    const stage = openStage()
    const secrets = secretsOf({ username: 'bob', password: 'a,b"c!$d', domain: 'WG', unused: 'z' })
    await stage.open({ source: SOURCE, mountOptions: ['vers=3.0', 'seal', 'noexec'], readOnly: true }, { secrets })
    const [source, directory, ...rest] = stage.argv()
    expect(source).toBe(SOURCE)
    expect(directory).toMatch(new RegExp(`^${stage.stateDir}/`))
    expect(rest).toEqual(['-o', 'vers=3.0,seal,nosuid,nodev,credentials=/proc/self/fd/3,ro'])
    expect(stage.programs.read('secret-file')).toBe('username=bob\npassword=a,b"c!$d\ndomain=WG\n')
    expect(stage.programs.read('environment')).not.toContain('a,b')
  })

  it("a CIFS share shows its files with the pod's group, because its server decides about groups", async () => {
    const stage = openStage()
    await stage.open({ source: SOURCE, mountOptions: ['uid=1000'] }, { secrets: secretsOf(USER), group: 2000 })
    expect(stage.mountOptions().slice(0, 5)).toEqual([
      'uid=1000',
      'gid=2000',
      'forcegid',
      'file_mode=0660',
      'dir_mode=0770',
    ])
  })

  it('a CIFS share keeps the file_mode and dir_mode of the mount options', async () => {
    const stage = openStage()
    const mountOptions = ['dir_mode=0750', 'gid=2000']
    await stage.open({ source: SOURCE, mountOptions }, { secrets: secretsOf(USER), group: 2000 })
    expect(stage.mountOptions().slice(0, 4)).toEqual(['dir_mode=0750', 'gid=2000', 'forcegid', 'file_mode=0660'])
  })

  it.each(['gid=3000', 'noforcegid'])("a CIFS share refuses %s together with the pod's group", async (option) => {
    const work = openStage().open({ source: SOURCE, mountOptions: [option] }, { secrets: secretsOf(USER), group: 2000 })
    expect(await readFailureMessage(work)).toBe(
      `option "mountOptions" has "${option}", but ownership "auto" shows all files as group 2000: leave one of them out`,
    )
  })

  it.each(['guest', 'sec=krb5', 'sec=krb5i', 'sec=none'])(
    'a CIFS share needs no Secret with mount option %s',
    async (option) => {
      const stage = openStage()
      await stage.open({ source: SOURCE, mountOptions: [option] })
      expect(stage.mountOptions()).toEqual([option, 'nosuid', 'nodev'])
      expect(stage.programs.read('secret-file')).toBe('')
    },
  )

  it("a CIFS share without a user in its Secret is refused, and the message names the Secret's keys", async () => {
    const rest = 'or write guest or, where the node allows it, sec=krb5 or sec=krb5i into mountOptions'
    expect(await readFailureMessage(openStage().open({ source: SOURCE }))).toBe(
      `a share needs a user: name a secret with the keys username and password in secretRef, ${rest}`,
    )
    const secrets = secretsOf({ user: 'bob', pass: 'hunter2' })
    expect(await readFailureMessage(openStage().open({ source: SOURCE }, { secrets }))).toBe(
      `a share needs a user, and the secret has only ["user","pass"]: give it the keys username and password, ${rest}`,
    )
  })

  it('a CIFS share with both guest and a user is refused', async () => {
    const work = openStage().open({ source: SOURCE, mountOptions: ['guest'] }, { secrets: secretsOf(USER) })
    expect(await readFailureMessage(work)).toBe(
      'option "mountOptions" has guest, but a secret has a username: leave one of them out',
    )
  })
})
