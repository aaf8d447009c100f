import { describe, expect, it } from 'vitest'
import { Refusal } from '../../src/errors/refusal.ts'
import { createSshLogin } from '../../src/volume/fuse-programs.ts'

/** What is put beside the mount, by name. */
function loginWith(secrets: Record<string, string>, mountOptions: string[] = []) {
  const kept: Record<string, string> = {}
  const given = new Map(Object.entries(secrets).map(([key, text]) => [key, Buffer.from(text)]))
  const put = (name: string, bytes: Uint8Array) => {
    kept[name] = Buffer.from(bytes).toString()
    return `/stage/${name}`
  }
  const { input, ...login } = createSshLogin(given, mountOptions, { put })
  return { ...login, input: input && Buffer.from(input).toString(), kept }
}

describe('the login of sshfs', () => {
  it("with a key does not use a terminal, and the key's last line ends with a newline", () => {
    const { options, input, kept } = loginWith({ 'ssh-privatekey': 'KEY' })
    expect(options.slice(-2)).toEqual(['IdentityFile=/stage/key', 'BatchMode=yes'])
    expect(input).toBeUndefined()
    expect(kept).toEqual({ key: 'KEY\n' })
    expect(loginWith({ 'ssh-privatekey': 'KEY\n' }).kept).toEqual({ key: 'KEY\n' })
  })

  it('with a password passes it only on stdin, and tries no key', () => {
    const { options, input, kept, args } = loginWith({ password: 'pä"s,s' })
    expect(options.slice(-3)).toEqual(['IdentityFile=none', 'PubkeyAuthentication=no', 'password_stdin'])
    expect(input).toBe('pä"s,s\n')
    expect(kept).toEqual({})
    expect([...options, ...args].join(' ')).not.toContain('pä')
  })

  it('uses no host key, agent or configuration of the node', () => {
    const { options, args } = loginWith({ password: 'x' })
    expect(args).toEqual(['-F', '/dev/null'])
    for (const always of ['StrictHostKeyChecking=yes', 'IdentityAgent=none', 'ControlPath=none', 'UpdateHostKeys=no']) {
      expect(options).toContain(always)
    }
    expect(options.join()).not.toContain('KnownHostsFile')
    expect(loginWith({ password: 'x', known_hosts: 'a b' })).toMatchObject({
      options: expect.arrayContaining(['UserKnownHostsFile=/stage/known_hosts', 'GlobalKnownHostsFile=/dev/null']),
      kept: { known_hosts: 'a b' },
    })
  })

  it('notices an unresponsive server, unless the pod sets the interval', () => {
    expect(loginWith({ password: 'x' }).options).toEqual(
      expect.arrayContaining(['ConnectTimeout=30', 'ServerAliveInterval=15', 'ServerAliveCountMax=3']),
    )
    const { options } = loginWith({ password: 'x' }, ['ServerAliveInterval=5', 'port=22'])
    expect(options.filter((option) => option.startsWith('ServerAlive'))).toEqual(['ServerAliveCountMax=3'])
  })

  it.each([
    [{}, [], 'needs a secret with the key "ssh-privatekey" or "password": name it in secretRef'],
    [{ key: 'y' }, [], 'or "password", and this one has ["key"]: give it one of them'],
    [{ password: 'x', 'ssh-privatekey': 'y' }, [], 'has both "ssh-privatekey" and "password"'],
    [{ 'ssh-privatekey': 'y' }, ['reconnect'], 'mountOptions has reconnect'],
    [{ password: 'a\nb' }, [], '"password" has a line break or a NUL'],
    [{ password: 'a\0' }, [], '"password" has a line break or a NUL'],
  ])('is refused with %j and mount options %j', (secrets, mountOptions, message) => {
    expect(() => loginWith(secrets, mountOptions)).toThrow(Refusal)
    expect(() => loginWith(secrets, mountOptions)).toThrow(message)
  })

  it('with a password may reconnect after a lost connection', () => {
    expect(loginWith({ password: 'x' }, ['reconnect']).input).toBe('x\n')
  })
})
