import { execFileSync, spawn } from 'node:child_process'
import * as fs from 'node:fs'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { cannotServe, FuseNode, until } from '../helpers/fuse-node.ts'
import { startHangingServer } from '../helpers/hanging.ts'
import { BINARY } from '../helpers/kubelet-call.ts'
import { titled } from '../helpers/needs.ts'
import { compile } from '../race/compile.ts'

const cannot = cannotServe('cc')
const SUCCESS = { status: 'Success' }

/** The server takes requests and never answers: who waits for it cannot even be killed. */
describe.skipIf(cannot !== '')(titled('a FUSE server that hangs', cannot), () => {
  let node: FuseNode
  beforeEach(() => {
    node = new FuseNode([])
  })

  const serve = (directory: string) => startHangingServer(directory, `${node.top}/hangs`)

  /** Milliseconds. */
  async function timed<T>(work: () => Promise<T>): Promise<{ result: T; took: number }> {
    const began = performance.now()
    const result = await work()
    return { result, took: performance.now() - began }
  }

  it('below a source: heal --watch says so, repairs others within 2 s, and ends within 1 s', async () => {
    const served = `${node.volumes}/served`
    const local = `${node.volumes}/local`
    fs.mkdirSync(local)
    const server = await serve(served)
    expect(await node.mount('a', { source: served })).toEqual(SUCCESS)
    expect(await node.mount('b', { source: local })).toEqual(SUCCESS)
    const watching = spawn(BINARY, ['heal', '--watch'], { env: { MODEKEEP_CONFIG: node.config }, stdio: 'pipe' })
    onTestFinished(() => void watching.kill('SIGKILL'))
    let said = ''
    watching.stdout.on('data', (data) => {
      said += data
    })
    const isBack = async () => {
      execFileSync('umount', ['--lazy', node.podDirectory('b')])
      const { took } = await timed(() => until(() => node.layers('b').length === 1))
      return took
    }
    await isBack()
    server.hang()
    expect(await isBack()).toBeLessThan(2000)
    await until(() => said.includes('the server of its source does not respond'))
    expect(said).toContain(node.podDirectory('a'))
    expect(await isBack()).toBeLessThan(2000)
    const { result, took } = await timed(() => {
      watching.kill('SIGTERM')
      return new Promise((done) => watching.once('exit', done))
    })
    expect(result).toBe(0)
    expect(took).toBeLessThan(1000)
  })

  it('below a source: a mount fails in its deadline and says why, and the pod can go', async () => {
    const served = `${node.volumes}/served`
    const server = await serve(served)
    expect(await node.mount('a', { source: served })).toEqual(SUCCESS)
    server.hang()
    for (const pod of ['b', 'a']) {
      const { result, took } = await timed(() => node.mount(pod, { source: served }))
      expect(result).toEqual({ status: 'Failure', message: expect.stringMatching(/served" does not respond/) })
      expect(took).toBeLessThan(9000)
    }
    const { result, took } = await timed(() => node.unmount('a'))
    expect(result).toEqual(SUCCESS)
    expect(took).toBeLessThan(9000)
    expect(node.layers('a')).toEqual([])
  })

  it('mounted in a pod by somebody else: calls for the pod end, and it is replaced', async () => {
    const source = `${node.volumes}/local`
    fs.mkdirSync(source)
    const server = await serve(node.podDirectory('a'))
    server.hang()
    const { result, took } = await timed(() => node.mount('a', { source }))
    expect(result).toEqual(SUCCESS)
    expect(took).toBeLessThan(9000)
    expect(node.layers('a').map(({ fsType }) => fsType)).not.toContain('fuse')
    expect(await node.unmount('a')).toEqual(SUCCESS)
  })

  it('that holds a page: the unmount of its mount ends all the same', async () => {
    const directory = node.podDirectory('a')
    const WRITE = 16
    const server = await startHangingServer(directory, `${node.top}/hangs`, String(WRITE))
    server.hang()
    const writer = spawn(compile('attacks/dirty-page.c'), [`${directory}/file`], { stdio: 'ignore' })
    await until(() => stateOf(writer.pid) === 'D')
    const { result, took } = await timed(() => node.unmount('a'))
    expect(result).toEqual(SUCCESS)
    expect(took).toBeLessThan(15_000)
    expect(node.layers('a')).toEqual([])
  })
})

/** See proc_pid_stat(5). */
function stateOf(pid: number | undefined): string | undefined {
  return fs.readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.[0]
}
