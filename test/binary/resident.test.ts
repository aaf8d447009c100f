import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import * as fs from 'node:fs'
import { createServer, type Server } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, it, onTestFinished } from 'vitest'
import { BINARY, BinaryNode } from '../helpers/kubelet-call.ts'
import { isRoot } from '../helpers/stage.ts'

const title = `calls of kubelet that a ready worker answers${isRoot ? '' : ' (skipped: mounts need root; run "sudo npm test")'}`

/** A node whose heal answers kubelet's calls, and a volume on it. */
class ResidentNode extends BinaryNode {
  readonly socket = `${this.top}/run/flexvolume.sock`
  readonly source = `${this.volumes}/data`
  heal: ChildProcess | undefined

  constructor() {
    super()
    fs.mkdirSync(this.source)
    fs.writeFileSync(`${this.source}/file`, '', { mode: 0o600 })
    this.variables = { MODEKEEP_SOCKET: this.socket }
    onTestFinished(() => this.stop())
  }

  /** Resolves when the worker listens. */
  async serve(): Promise<void> {
    this.heal = spawn(BINARY, ['heal', '--watch', '--answer-calls'], {
      stdio: ['ignore', 'ignore', 'inherit'],
      env: { MODEKEEP_CONFIG: `${this.top}/config.json`, MODEKEEP_SOCKET: this.socket },
    })
    while (!fs.existsSync(this.socket)) await delay(20)
  }

  async stop(): Promise<void> {
    const { heal } = this
    if (heal === undefined || heal.exitCode !== null || heal.signalCode !== null) return
    const ended = new Promise((done) => heal.once('exit', done))
    heal.kill('SIGTERM')
    await ended
  }

  /** The process that answers, of which heal has one. */
  worker(): number {
    const [worker = ''] = fs.readFileSync(`/proc/${this.heal?.pid}/task/${this.heal?.pid}/children`, 'utf8').split(' ')
    return Number(worker)
  }

  mount(pod: string, more: Record<string, string> = {}): ReturnType<BinaryNode['call']> {
    const asked = { source: this.source, ownership: 'walk', 'kubernetes.io/fsGroup': '2000', ...more }
    return this.call('mount', this.podDirectory(pod), JSON.stringify(asked))
  }

  /** Which way each call went. */
  doors(): unknown[] {
    return this.logLines()
      .filter(({ outcome, verb }) => outcome !== undefined && verb !== 'heal')
      .map(({ verb, door = 'own process' }) => `${verb}: ${door}`)
  }
}

describe.skipIf(!isRoot)(title, () => {
  it('have the same replies and effects as calls in a process of their own', async () => {
    const node = new ResidentNode()
    const own = await node.call('init')
    expect(await node.mount('own')).toEqual({ status: 'Success' })
    await node.serve()
    expect(await node.call('init')).toEqual(own)
    expect(await node.mount('a')).toEqual({ status: 'Success' })
    expect(fs.statSync(`${node.source}/file`).gid).toBe(2000)
    expect(node.layers('a')).toHaveLength(1)
    expect(await node.mount('b', { 'kubernetes.io/fsGroup': '3000' })).toMatchObject({
      status: 'Failure',
      message: expect.stringContaining('2000'),
    })
    for (const pod of ['a', 'own']) {
      expect(await node.call('unmount', node.podDirectory(pod))).toEqual({ status: 'Success' })
      expect(node.layers(pod)).toEqual([])
    }
    expect(node.doors()).toEqual([
      'mount: own process',
      'mount: resident',
      'mount: resident',
      'unmount: resident',
      'unmount: resident',
    ])
  })

  it('are made by the process that kubelet started if they have secrets, start a program, or have another configuration', async () => {
    const node = new ResidentNode()
    await node.serve()
    const { message } = await node.mount('a', { 'kubernetes.io/secret/password': 'c2VjcmV0' })
    expect(message).not.toContain('c2VjcmV0')
    await node.mount('b', { 'kubernetes.io/fsType': 'fuse.none' })
    fs.copyFileSync(`${node.top}/config.json`, `${node.top}/other.json`)
    node.variables = { ...node.variables, MODEKEEP_CONFIG: `${node.top}/other.json` }
    expect(await node.mount('c')).toEqual({ status: 'Success' })
    expect(node.doors()).toEqual(['mount: own process', 'mount: own process', 'mount: own process'])
  })

  it('are made by the process that kubelet started in another mount namespace, with another executable, or for another user', async () => {
    const node = new ResidentNode()
    await node.serve()
    node.wrapper = ['unshare', '--mount', '--propagation', 'unchanged']
    await node.mount('a')
    node.wrapper = ['unshare', '--user', '--map-root-user']
    await node.mount('b')
    node.wrapper = ['sh', '-c', `cp ${BINARY} ${node.top}/copy && shift && exec ${node.top}/copy "$@"`, 'sh']
    expect(await node.mount('c')).toEqual({ status: 'Success' })
    expect(node.doors()).not.toContain('mount: resident')
  })

  it('are made by the process that kubelet started if the worker has other rights', async () => {
    const node = new ResidentNode()
    await node.serve()
    for (const right of ['--no-new-privs', '--bounding-set=-sys_boot']) {
      node.wrapper = ['setpriv', right]
      expect(await node.mount('a')).toEqual({ status: 'Success' })
    }
    node.wrapper = ['setpriv', '--bounding-set=+all']
    expect(await node.mount('a')).toEqual({ status: 'Success' })
    expect(node.doors()).toEqual(['mount: own process', 'mount: own process', 'mount: resident'])
  })

  it('are made by the process that kubelet started after the worker was killed, is stopped, or is gone', async () => {
    const node = new ResidentNode()
    await node.serve()
    const first = node.worker()
    process.kill(first, 'SIGSTOP')
    expect(await node.mount('a')).toEqual({ status: 'Success' })
    process.kill(first, 'SIGCONT')
    await delay(500)
    expect(node.doors()).toEqual(['mount: own process'])
    process.kill(first, 'SIGKILL')
    while (fs.existsSync(`/proc/${first}`)) await delay(20)
    expect(await node.mount('b')).toEqual({ status: 'Success' })
    // Another worker removes the socket of the killed one.
    while (!node.doors().includes('mount: resident')) {
      await delay(100)
      await node.mount('b')
    }
    await node.stop()
    while (fs.existsSync(node.socket)) await delay(20)
    expect(await node.call('unmount', node.podDirectory('a'))).toEqual({ status: 'Success' })
    expect(node.doors().at(-1)).toBe('unmount: own process')
  })

  it('are made by other processes while the worker is busy', async () => {
    const node = new ResidentNode()
    await node.serve()
    // Without CPU time four calls may come one after the other.
    for (let round = 0; round < 20; round++) {
      const pods = ['a', 'b', 'c', 'd'].map((pod) => `${pod}${round}`)
      for (const reply of await Promise.all(pods.map((pod) => node.mount(pod))))
        expect(reply).toEqual({ status: 'Success' })
      for (const pod of pods) expect(node.layers(pod)).toHaveLength(1)
      if (node.doors().includes('mount: own process')) break
    }
    expect(new Set(node.doors())).toEqual(new Set(['mount: resident', 'mount: own process']))
  })

  it('are finished by the process that kubelet started if the worker dies in the middle', async () => {
    const node = new ResidentNode()
    for (let n = 0; n < 5000; n++) fs.writeFileSync(`${node.source}/f${n}`, '')
    await node.serve()
    const walking = node.mount('a')
    while (!fs.existsSync(`${node.state}/mounts`)) await delay(1)
    process.kill(node.worker(), 'SIGKILL')
    expect(await walking).toEqual({ status: 'Success' })
    expect(execFileSync('find', [node.source, '!', '-gid', '2000', '-printf', '.']).toString()).toBe('')
    expect(node.doors()).toEqual(['mount: own process'])
  })

  it('leave the worker in place if their arguments are invalid', async () => {
    const node = new ResidentNode()
    await node.serve()
    const worker = node.worker()
    for (const call of [
      ['mount', 'relative', '{}'],
      ['unmount', '/a/../b'],
      ['mount', node.podDirectory('a'), '{'],
    ]) {
      expect(await node.call(...call)).toMatchObject({ status: 'Failure' })
    }
    expect(await node.mount('a')).toEqual({ status: 'Success' })
    expect(node.worker()).toBe(worker)
    expect(node.doors().at(-1)).toBe('mount: resident')
  })

  it('do not go to another program that listens at the socket', async () => {
    const node = new ResidentNode()
    fs.mkdirSync(`${node.top}/run`)
    let received = ''
    const server: Server = createServer((socket) => {
      socket.on('error', () => {})
      socket.on('data', (data) => {
        received += data
      })
      socket.write('{"status":"Success"}\n')
    })
    await new Promise<void>((done) => void server.listen(node.socket, done))
    onTestFinished(() => void server.close())
    expect(await node.mount('a')).toEqual({ status: 'Success' })
    expect(node.layers('a')).toHaveLength(1)
    expect(received).toBe('')
  })

  it('are made with the umask of the process that kubelet started', async () => {
    const node = new ResidentNode()
    await node.serve()
    const modes: number[] = []
    for (const [pod, umask] of [
      ['a', '0000'],
      ['b', '0077'],
    ] as const) {
      node.wrapper = ['sh', '-c', `umask ${umask} && shift && exec "$@"`, 'sh', 'sh']
      expect(await node.mount(pod)).toEqual({ status: 'Success' })
      modes.push(fs.statSync(node.log).mode & 0o777)
    }
    expect(new Set(modes).size).toBe(1)
    expect(node.doors()).toEqual(['mount: resident', 'mount: resident'])
  })
})
