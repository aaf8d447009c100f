import * as fs from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startSamba } from '../../volume/servers.ts'
import { createOutageSwitch, expectNothingLeft, OUTAGES, type Outage } from '../network/faults.ts'
import { mountDuringOutage, unmountDuringOutage } from '../network/interrupted.ts'
import { createServerNetwork, IN_SERVER_NETWORK, removeServerNetwork, SERVER_ADDRESS } from '../network/namespace.ts'
import { makeFiles } from '../network/nfs-server.ts'
import { GROUP, ServerNode, SUCCESS } from '../network/node.ts'

const SIMPLE_PASSWORD = 'simple'
const ODD_PASSWORD = `a,b "c" 'd'\\e;f=g%h#ü$(i)`
/** Seconds for the unmount of a share whose server does not respond. */
const UNMOUNT_LIMIT_SECONDS = 200

beforeAll(createServerNetwork)
afterAll(removeServerNetwork)

async function prepare(password = SIMPLE_PASSWORD, more = '') {
  const server = await startSamba(password, IN_SERVER_NETWORK)
  makeFiles(`${server.shared}/volume`, 3)
  const secret = (value: string) => Buffer.from(value).toString('base64')
  const options = {
    source: `//${SERVER_ADDRESS}/share`,
    mountOptions: `vers=3.1.1,port=${server.port}${more}`,
    ownership: 'auto',
    'kubernetes.io/secret/username': secret('root'),
    'kubernetes.io/secret/password': secret(password),
  }
  return { node: new ServerNode('cifs'), server, options }
}

function showFile(node: ServerNode, pod: string): [number, string] {
  const { gid, mode } = fs.statSync(`${node.podDirectory(pod)}/volume/file0`)
  return [gid, mode.toString(8)]
}

/** Samples the arguments of all processes until it is disposed. */
function sampleArguments(): Disposable & { seen: Set<string> } {
  const seen = new Set<string>()
  const sample = () => {
    for (const pid of fs.readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
      try {
        seen.add(fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8'))
      } catch {
        // It has ended.
      }
    }
  }
  const timer = setInterval(sample, 10)
  return { seen, [Symbol.dispose]: () => clearInterval(timer) }
}

function findInFiles(directory: string, words: readonly string[]): string[] {
  if (!fs.existsSync(directory)) return []
  return (fs.readdirSync(directory, { recursive: true }) as string[])
    .map((name) => `${directory}/${name}`)
    .filter((file) => fs.lstatSync(file).isFile())
    .filter((file) => words.some((word) => fs.readFileSync(file).includes(word)))
}

describe('CIFS 3.1.1 of samba', () => {
  it('two pods with different groups see the share with their own group at once', async () => {
    const { node, server, options } = await prepare()
    expect(await node.mount('a', options, 2000)).toMatchObject(SUCCESS)
    expect(await node.mount('b', options, 3000)).toMatchObject(SUCCESS)
    expect([showFile(node, 'a'), showFile(node, 'b')]).toEqual([
      [2000, '100660'],
      [3000, '100660'],
    ])
    fs.writeFileSync(`${node.podDirectory('b')}/volume/new`, 'content')
    expect(fs.readFileSync(`${server.shared}/volume/new`, 'utf8')).toBe('content')
    for (const pod of ['a', 'b']) expect(await node.unmount(pod)).toMatchObject(SUCCESS)
    expect(fs.statSync(`${server.shared}/volume/file0`).gid).toBe(100)
    await expectNothingLeft(node, 'a', 'b')
  })

  it('without ownership, the options uid, gid, file_mode and dir_mode decide what a pod sees', async () => {
    const { node, options } = await prepare()
    const mountOptions = `${options.mountOptions},uid=1000,gid=4000,file_mode=0640,dir_mode=0750`
    expect(await node.mount('a', { ...options, mountOptions, ownership: 'none' })).toMatchObject(SUCCESS)
    expect([...showFile(node, 'a'), fs.statSync(`${node.podDirectory('a')}/volume/file0`).uid]).toEqual([
      4000,
      '100640',
      1000,
    ])
    expect(await node.unmount('a')).toMatchObject(SUCCESS)
  })

  it('a password of commas, quotes, spaces, a backslash and an umlaut works, and stays out of arguments, log and files', async () => {
    const { node, options } = await prepare(ODD_PASSWORD, ',iocharset=utf8')
    // Without it the kernel takes the password for text of its own character set, which is that of its configuration.
    const words = [ODD_PASSWORD, ODD_PASSWORD.replaceAll(',', ',,'), Buffer.from(ODD_PASSWORD).toString('base64')]
    // Kubelet itself passes a Secret in the arguments of the call. Only other processes are judged.
    using samples = sampleArguments()
    expect(await node.mount('a', options)).toMatchObject(SUCCESS)
    const isOfCall = (line: string) => line.includes('kubernetes.io/secret/password')
    const judged = [...samples.seen].filter((line) => !isOfCall(line))
    expect(judged.some((line) => line.includes('mount.cifs'))).toBe(true)
    expect(judged.filter((line) => words.some((word) => line.includes(word)))).toEqual([])
    expect(fs.readFileSync('/proc/self/mountinfo', 'utf8')).not.toContain('password')
    expect(findInFiles(node.top, words)).toEqual([])
    expect(await node.unmount('a')).toMatchObject(SUCCESS)
    expect(findInFiles(node.top, words)).toEqual([])
  })

  it.each(['walk', 'idmap'])('ownership %s is refused, and the message names auto', async (ownership) => {
    const { node, options } = await prepare()
    const { status, message } = await node.mount('a', { ...options, ownership })
    expect([status, message]).toEqual(['Failure', expect.stringMatching(/ownership.*"?auto"?/)])
    expect([node.layers('a'), node.mountState()]).toEqual([[], []])
  })

  it('a share whose directory the server deletes and makes anew is unmounted and mounted again', async () => {
    const { node, server, options } = await prepare()
    expect(await node.mount('a', options)).toMatchObject(SUCCESS)
    fs.rmSync(server.shared, { recursive: true })
    fs.mkdirSync(server.shared)
    fs.writeFileSync(`${server.shared}/anew`, '')
    await node.mount('a', options)
    expect(await node.unmount('a')).toMatchObject(SUCCESS)
    expect(await node.mount('a', options)).toMatchObject(SUCCESS)
    expect(fs.readdirSync(node.podDirectory('a'))).toEqual(['anew'])
    expect(await node.unmount('a')).toMatchObject(SUCCESS)
    await expectNothingLeft(node, 'a')
  })
})

describe.each(OUTAGES)('CIFS 3.1.1 with %s', (outage: Outage) => {
  async function prepareOutage() {
    const { node, server, options } = await prepare()
    return { node, options, ...createOutageSwitch(outage, server.pid) }
  }

  it('a mount fails within its limit, and the next one succeeds once the server responds', async () =>
    mountDuringOutage(await prepareOutage(), /^/))

  it('a repeated mount, heal and an unmount of a mounted share end within their limits', async () => {
    const outageOfShare = await prepareOutage()
    const expectGroup = () => expect(showFile(outageOfShare.node, 'a')[0]).toBe(GROUP)
    await unmountDuringOutage(outageOfShare, UNMOUNT_LIMIT_SECONDS, expectGroup)
  })
})
