import { spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import { beforeEach, describe, expect, it } from 'vitest'
import { cannotServe, FuseNode, killDaemon, until } from '../helpers/fuse-node.ts'
import { addSkipReason } from '../helpers/needs.ts'
import { base64, SshServer } from '../helpers/ssh-server.ts'

const TMPFS_MAGIC = 0x01021994

const cannot = cannotServe('sshfs', 'sshd', 'ssh-keygen')

describe.skipIf(cannot !== '')(addSkipReason('sshfs volumes with a real sshd', cannot), () => {
  let node: FuseNode
  let server: SshServer
  let options: Record<string, string>
  let key: string
  let hosts: string
  beforeEach(async () => {
    node = new FuseNode(['fuse.sshfs'], ['root@127.0.0.1:/*', 'keeper@127.0.0.1:/*'])
    server = await SshServer.start(node.top)
    fs.writeFileSync(`${server.shared}/a`, 'hello', { mode: 0o640 })
    key = fs.readFileSync(server.key, 'utf8')
    hosts = server.knownHosts
    options = {
      'kubernetes.io/fsType': 'fuse.sshfs',
      source: `root@127.0.0.1:${server.shared}`,
      mountOptions: `port=${server.port}`,
    }
  })

  const success = { status: 'Success' }
  const withKey = (more: Record<string, string> = {}) => ({
    ...options,
    'kubernetes.io/secret/ssh-privatekey': base64(key),
    'kubernetes.io/secret/known_hosts': base64(hosts),
    ...more,
  })
  const shown = () => fs.readFileSync(`${node.podDirectory('one')}/a`, 'utf8')

  it("an sshfs volume shows a directory of the server that accepts the volume's key, and applies the group", async () => {
    const asked = withKey({ 'kubernetes.io/fsGroup': '4242', ownership: 'auto' })
    expect(await node.mount('one', asked)).toMatchObject(success)
    expect(shown()).toBe('hello')
    const { mode } = fs.statSync(`${server.shared}/a`)
    expect(fs.statSync(`${node.podDirectory('one')}/a`)).toMatchObject({ gid: 4242, mode })
    fs.writeFileSync(`${node.podDirectory('one')}/b`, 'written')
    expect(fs.readFileSync(`${server.shared}/b`, 'utf8')).toBe('written')
    expect(await node.unmount('one')).toEqual(success)
    await until(() => node.processes().length === 0)
  })

  it('an sshfs volume stores no secret in staging, record, log, argument or environment', async () => {
    await node.mount('one', withKey())
    expect(node.staged()).toEqual([])
    const secrets = [key.split('\n')[2] ?? '?', base64(key).slice(0, 60)]
    const texts = [fs.readFileSync(node.log, 'utf8'), recordsIn(node.state), ...node.processes().flatMap(aboutProcess)]
    expect(texts.length).toBeGreaterThan(3)
    for (const secret of secrets) for (const text of texts) expect(text).not.toContain(secret)
    expect(await node.unmount('one')).toEqual(success)
  })

  it('an sshfs volume accepts a password of any characters, and passes the password in no argument', async () => {
    const password = 'p,a"s!s$ w\'ö\\rd%'
    server.addUser('keeper', password)
    const asked = {
      ...options,
      source: `keeper@127.0.0.1:${server.shared}`,
      'kubernetes.io/secret/password': base64(password),
      'kubernetes.io/secret/known_hosts': base64(hosts),
    }
    expect(await node.mount('one', asked)).toEqual(success)
    expect(fs.readdirSync(node.podDirectory('one'))).toEqual(['a'])
    for (const text of node.processes().flatMap(aboutProcess)) expect(text).not.toContain(password)
    expect(await node.unmount('one')).toEqual(success)
    const wrong = await node.mount('one', { ...asked, 'kubernetes.io/secret/password': base64('wr0ngwr0ng') })
    expect(wrong.status).toBe('Failure')
    expect(wrong.message).not.toContain('wr0ngwr0ng')
    expect([node.layers('one'), node.staged(), node.processes()]).toEqual([[], [], []])
  })

  it('an sshfs volume refuses a server with an unknown host key', async () => {
    const { status } = await node.mount(
      'one',
      withKey({ 'kubernetes.io/secret/known_hosts': base64(server.otherHost) }),
    )
    expect(status).toBe('Failure')
    const { 'kubernetes.io/secret/known_hosts': _, ...unknown } = withKey() as Record<string, string>
    expect((await node.mount('one', unknown)).status).toBe('Failure')
    expect([node.layers('one'), node.staged(), node.processes()]).toEqual([[], [], []])
  })

  it('an sshfs volume uses no SSH key of the node', async () => {
    const { message } = await node.mount('one', options)
    expect(message).toMatch(/needs a secret/)
  })

  it.each([
    'ssh_command=/bin/sh',
    'ProxyCommand=/bin/sh',
    'sftp_server=/bin/sh',
    'directport=1',
    'IdentityFile=/root/.ssh/id_rsa',
    'UserKnownHostsFile=/etc/shadow',
    'StrictHostKeyChecking=no',
    'ssh_configfile=/x',
    'password_stdin',
    'port=22 -oProxyCommand=x',
  ])('an sshfs volume refuses the option %s', async (option) => {
    const { status, message } = await node.mount('one', withKey({ mountOptions: option }))
    expect(status).toBe('Failure')
    expect(message).toMatch(/^option "mountOptions" has/)
  })

  it.each(['-oProxyCommand=x@h:/a', 'root@-h:/a', 'root@127.0.0.1:/a/../b', 'root@h:a', '/local', 'root@h:/a,b'])(
    'an sshfs volume refuses the source %s',
    async (source) => {
      const { message } = await node.mount('one', withKey({ source }))
      expect(message).toMatch(/write it like user@host:\/directory/)
    },
  )

  it("an sshfs volume compares its source with the node's rules by whole path components", async () => {
    const other = await node.mount('one', withKey({ source: `root@127.0.0.11:${server.shared}` }))
    expect(other.message).toMatch(/does not have its source/)
  })

  it('an sshfs volume gives up on a server that never responds, and leaves nothing on the node', async () => {
    const config = JSON.parse(fs.readFileSync(node.config, 'utf8'))
    fs.writeFileSync(node.config, JSON.stringify({ ...config, helperTimeoutSeconds: 1 }))
    server.freeze()
    const { status } = await node.mount('one', withKey())
    expect(status).toBe('Failure')
    expect([node.layers('one'), node.staged()]).toEqual([[], []])
    await until(() => node.processes().length === 0)
  })

  it('an sshfs volume whose call was killed keeps its secrets only in memory, until the next call', async () => {
    server.freeze()
    const { child, ended } = node.start(['mount', node.podDirectory('one'), JSON.stringify(withKey())])
    await until(() => node.processes().length > 1 && node.staged().length > 0)
    const [staged] = node.staged().filter((name) => !name.endsWith('.lock'))
    const file = `${node.state}/staging/${staged}/key`
    await until(() => fs.existsSync(file))
    expect(fs.statfsSync(file).type).toBe(TMPFS_MAGIC)
    expect(fs.statSync(file)).toMatchObject({ uid: 0, mode: 0o100600 })
    child.kill('SIGKILL')
    // sshfs no longer has the call's streams, so the call does not wait for it.
    await ended
    expect(fs.existsSync(file)).toBe(true)
    expect(await node.unmount('two')).toEqual(success)
    expect(node.staged()).toEqual([])
    await until(() => node.processes().length === 0)
  })

  it('an sshfs volume is unmounted within its deadline while its server hangs and the waiting process cannot be killed', async () => {
    const config = JSON.parse(fs.readFileSync(node.config, 'utf8'))
    fs.writeFileSync(node.config, JSON.stringify({ ...config, helperTimeoutSeconds: 3 }))
    await node.mount('one', withKey())
    server.freeze()
    expect(node.heal()).toMatchObject([{ state: 'healthy', action: 'none' }])
    expect(await node.unmount('one')).toEqual(success)
    expect(node.layers('one')).toEqual([])
    await until(() => node.processes().length === 0)
  })

  it('an sshfs volume is not mounted by heal, which has no secrets, but by the next call', async () => {
    await node.mount('one', withKey())
    await killDaemon(node, 'one')
    expect(node.heal()).toMatchObject([{ action: 'failed', reason: expect.stringMatching(/secrets.*delete the pod/) }])
    expect(await node.mount('one', withKey())).toEqual(success)
    expect(shown()).toBe('hello')
    expect(await node.unmount('one')).toEqual(success)
  })
})

function aboutProcess(pid: number): string[] {
  const read = (file: string) => fs.readFileSync(`/proc/${pid}/${file}`, 'utf8')
  return [read('cmdline'), read('environ')]
}

function recordsIn(state: string): string {
  const { stdout } = spawnSync('find', [`${state}/mounts`, '-type', 'f', '-exec', 'cat', '{}', '+'], {
    encoding: 'utf8',
  })
  if (stdout === '') throw new Error('no record')
  return stdout
}
