import { execFile, execFileSync, spawn } from 'node:child_process'
import * as fs from 'node:fs'
import { promisify } from 'node:util'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import type { DoctorDocument } from '../../src/cli/commands/doctor.ts'
import type { GcDocument } from '../../src/cli/commands/gc.ts'
import type { StatusDocument } from '../../src/cli/commands/status-document.ts'
import { DEFAULT_CONFIG, type NodeConfig } from '../../src/config/defaults.ts'
import { linuxHost } from '../../src/kernel/linux/index.ts'
import { resolveVolumeIdentity } from '../../src/state/volume-identity.ts'
import { volumeRecords } from '../../src/state/volume-record.ts'
import { expectInTime } from '../helpers/busy-machine.ts'
import { cannotServe, FuseNode, until } from '../helpers/fuse-node.ts'
import { readProcessState, startHangingServer } from '../helpers/hanging.ts'
import { BINARY } from '../helpers/kubelet-call.ts'
import { addSkipReason } from '../helpers/needs.ts'
import { compile } from '../race/compile.ts'

const skipReason = cannotServe('cc')
const execFileAsync = promisify(execFile)
const SUCCESS = { status: 'Success' }
/** Milliseconds of a command that waits five seconds, on a machine that is busy. */
const MOST = 60_000

/** The server takes requests and never answers: who waits for it cannot even be killed. */
describe.skipIf(skipReason !== '')(addSkipReason('a FUSE server that hangs', skipReason), () => {
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

  it('below a source: heal --watch reports it, repairs other mounts within 2 s, and ends within 1 s', async () => {
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
    // What a machine without CPU time takes in any case.
    const usualMs = await isBack()
    server.hang()
    expectInTime(await isBack(), 2000 + 2 * usualMs)
    await until(() => said.includes('the server of its source does not respond'))
    expect(said).toContain(node.podDirectory('a'))
    expectInTime(await isBack(), 2000 + 2 * usualMs)
    const { result, took } = await timed(() => {
      watching.kill('SIGTERM')
      return new Promise((done) => watching.once('exit', done))
    })
    expect(result).toBe(0)
    expectInTime(took, 1000 + 2 * usualMs)
  })

  it('below a source: a mount fails within its deadline with the reason, and the pod can be deleted', async () => {
    const served = `${node.volumes}/served`
    const server = await serve(served)
    expect(await node.mount('a', { source: served })).toEqual(SUCCESS)
    server.hang()
    for (const pod of ['b', 'a']) {
      const { result, took } = await timed(() => node.mount(pod, { source: served }))
      expect(result).toEqual({ status: 'Failure', message: expect.stringMatching(/served" does not respond/) })
      expectInTime(took, 9000)
    }
    const { result, took } = await timed(() => node.unmount('a'))
    expect(result).toEqual(SUCCESS)
    expectInTime(took, 9000)
    expect(node.layers('a')).toEqual([])
  })

  it('below directories that commands open: each command ends within its deadline, reports it, and completes the rest', async () => {
    const served = `${node.volumes}/served`
    const server = await serve(served)
    const link = `${node.top}/link`
    fs.symlinkSync(served, link)
    const config = JSON.parse(fs.readFileSync(node.config, 'utf8'))
    config.allow[0].sources.push(`${served}/*`, `${link}/*`)
    fs.writeFileSync(node.config, JSON.stringify(config))
    const { silent, gone } = recordVolumes(config, served, node.volumes)
    expect(await node.mount('a', { source: served })).toEqual(SUCCESS)
    server.hang()
    const env = { PATH: process.env.PATH, MODEKEEP_CONFIG: node.config }
    const byHand = async <T>(...args: string[]): Promise<T> => {
      const run = () => execFileAsync(BINARY, [...args, '--json'], { env }).catch((error) => error)
      const { result, took } = await timed<{ stdout: string }>(run)
      expect(took, args.join(' ')).toBeLessThan(MOST)
      return JSON.parse(result.stdout)
    }
    const error = `directory "${served}" does not respond (the server or the daemon of its file system hangs, or a process keeps a directory of the path locked): repair that on the node, then call this again [unresponsive]`
    const refused = await Promise.all([
      byHand('plan', served, '--fsgroup', '2000'),
      byHand('apply', served, '--fsgroup', '2000'),
      byHand('restore', served),
      byHand('restore', silent),
      byHand('gc', '--forget', silent),
    ])
    expect(refused).toEqual(refused.map(() => expect.objectContaining({ kind: 'Error', error })))
    const [{ volumes, mounts }, { findings }] = await Promise.all([
      byHand<StatusDocument>('status'),
      byHand<DoctorDocument>('doctor'),
    ])
    expect(volumes.map(({ volume }) => volume).sort()).toEqual([silent, gone].sort())
    expect(mounts).toMatchObject([{ state: 'unknown', reason: expect.stringContaining('does not respond') }])
    for (const [area, path] of [
      ['configuration', served],
      ['configuration', link],
      ['volumes', served],
    ]) {
      const text = `${path} does not respond: its server or daemon hangs, or a process keeps a directory of the path locked`
      const remedy = 'repair the server or end that process on the node'
      expect(findings).toContainEqual({ area, level: 'warning', text, remedy })
    }
    expect(findings.map(({ text }) => text)).toContain('volumes on record: 2')
    // Whose record would keep the volume.
    expect(await node.unmount('a')).toEqual(SUCCESS)
    for (const dry of [['--dry-run'], []]) {
      const { items } = await byHand<GcDocument>('gc', ...dry)
      expect(items.filter(({ kind }) => kind === 'volume')).toEqual(
        expect.arrayContaining([
          {
            kind: 'volume',
            name: silent,
            action: 'kept',
            reason: expect.stringContaining(`${served} does not respond`),
            code: 'records-kept',
          },
          { kind: 'volume', name: gone, action: 'removed', reason: expect.stringContaining('was deleted') },
        ]),
      )
    }
  })

  it('mounted in a pod by another program: calls for the pod end, and the mount is replaced', async () => {
    const source = `${node.volumes}/local`
    fs.mkdirSync(source)
    const server = await serve(node.podDirectory('a'))
    server.hang()
    const { result, took } = await timed(() => node.mount('a', { source }))
    expect(result).toEqual(SUCCESS)
    expectInTime(took, 9000)
    expect(node.layers('a').map(({ fsType }) => fsType)).not.toContain('fuse')
    expect(await node.unmount('a')).toEqual(SUCCESS)
  })

  it('that blocks a page of memory of a process: the unmount of the FUSE mount still ends', async () => {
    const directory = node.podDirectory('a')
    const WRITE = 16
    const server = await startHangingServer(directory, `${node.top}/hangs`, String(WRITE))
    server.hang()
    const writer = spawn(compile('attacks/dirty-page.c'), [`${directory}/file`], { stdio: 'ignore' })
    await until(() => readProcessState(writer.pid) === 'D')
    const { result, took } = await timed(() => node.unmount('a'))
    expect(result).toEqual(SUCCESS)
    expectInTime(took, 15_000)
    expect(node.layers('a')).toEqual([])
  })
})

/** Records two volumes that were reached by a link: what is served, and a directory that is gone. */
function recordVolumes(config: Pick<NodeConfig, 'stateDir'>, served: string, local: string) {
  const { inodes } = linuxHost
  const known = {
    group: 2000,
    groupAccess: 'keep',
    complete: true,
    restorePending: false,
    asked: `${local}/link`,
  } as const
  const store = { host: linuxHost, config: { ...DEFAULT_CONFIG, ...config } }
  const handle = inodes.openLinkFree(served)
  const silent = resolveVolumeIdentity(store, handle, inodes.stat(handle))
  inodes.close(handle)
  const above = inodes.openLinkFree(local)
  const gone = `${inodes.fileSystemId(above)}-dead-1`
  inodes.close(above)
  volumeRecords.write(store, { ...known, volume: silent, source: served })
  volumeRecords.write(store, { ...known, volume: gone, source: `${local}/gone` })
  return { silent, gone }
}
