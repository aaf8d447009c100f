import { spawn } from 'node:child_process'
import * as fs from 'node:fs'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { addSkipReason, cannotMountWith } from '../../helpers/needs.ts'
import { parseTrace } from '../../helpers/strace-text.ts'
import { makeVolume, NriNode, replaced } from './node.ts'

const cannot = cannotMountWith('mkfs.ext4', 'strace')
const ASKS = { 'modekeep/group': '2000' }
/** Calls on an open file, of which strace shows the path, the pipe or the socket. */
const ON_FILES = ['read', 'readv', 'pread64', 'write', 'writev', 'pwrite64', 'fsync', 'fdatasync', 'ftruncate', 'flock']
const IN_MEMORY = /^(\/proc|\/sys|\/dev)(\/|$)/

/** The paths on disks that a thread's calls name. */
function pathsOnDisk(trace: string): string[] {
  const calls = parseTrace(trace).filter(({ name }) => name !== 'connect')
  const paths = calls.flatMap(({ name, text }) => {
    const named = ON_FILES.includes(name) ? /^\w+\(\d+<(\/[^>]*)>/ : /"([^"]+)"/
    return named.exec(text)?.[1] ?? []
  })
  return paths.filter((path) => !IN_MEMORY.test(path))
}

describe.skipIf(cannot !== '')(addSkipReason('the answering thread of the NRI plugin', cannot), () => {
  let node: NriNode
  beforeEach(() => {
    node = new NriNode()
    return () => node.end()
  })

  it('the thread that replies to the container runtime opens no file on a disk between its connection and its last answer', async () => {
    const source = node.publish(1, makeVolume(node, 1))
    const end = await node.serve()
    const { pid } = node.plugin
    const file = `${node.top}/trace`
    // Without -f: of the first thread alone, which answers.
    const calls = ['%file', 'connect', ...ON_FILES].join()
    const strace = spawn('strace', ['-yy', '-s', '256', '-o', file, '-e', `trace=${calls}`, '-p', String(pid)])
    onTestFinished(() => void strace.kill('SIGKILL'))
    await new Promise((done) => strace.stderr.once('data', done))
    // The next connection is traced from its beginning.
    end.socket.destroy()
    const next = await node.runtime.next()
    await next.start([], [])
    const create = (annotations: Record<string, string>, id: string) =>
      next.call('CreateContainer', 'ContainerRequest', node.request(1, annotations, source, id.repeat(64)))
    expect(replaced(await create(ASKS, 'a'))).toHaveLength(1)
    expect(replaced(await create({}, 'b'))).toEqual([])
    expect((await create({ 'modekeep/group': 'nothere=2000' }, 'c')).status?.message).toContain('"nothere"')
    await next.call('StateChange', 'StateChangeEvent', { event: 7, ...node.request(1, ASKS, source, 'a'.repeat(64)) })
    await next.call('StopContainer', 'ContainerRequest', node.request(1, ASKS, source, 'a'.repeat(64)))
    await expect.poll(() => node.probe().status).toBe(0)
    strace.kill('SIGTERM')
    await new Promise((done) => strace.once('exit', done))
    const trace = fs.readFileSync(file, 'utf8').replaceAll(/^/gm, `${pid} `)
    const connected = trace.lastIndexOf(`"${node.socket}"`)
    expect(connected).toBeGreaterThan(0)
    expect(pathsOnDisk(trace.slice(trace.indexOf('\n', connected) + 1))).toEqual([])
  })
})
