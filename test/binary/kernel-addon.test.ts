import { spawn, spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import { describe, expect, it, onTestFinished } from 'vitest'
import { CARRIED_LIBRARIES } from '../../scripts/build/libraries.ts'
import { cannotServe, FuseNode, until } from '../helpers/fuse-node.ts'
import { cannotInject } from '../helpers/inject.ts'
import { BinaryNode } from '../helpers/kubelet-call.ts'
import { addSkipReason } from '../helpers/needs.ts'
import { BINARY } from '../helpers/node-directory.ts'

const O_CLOEXEC = 0o2000000
const cannot = cannotServe('bindfs')

/** A process's descriptors that hold the addon. */
function addonsOf(pid: number): { path: string; flags: number }[] {
  return fs.readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
    try {
      if (fs.readlinkSync(`/proc/${pid}/fd/${fd}`) !== '/memfd:modekeep-kernel (deleted)') return []
      const [, flags = ''] = /^flags:\s*(\d+)$/m.exec(fs.readFileSync(`/proc/${pid}/fdinfo/${fd}`, 'utf8')) ?? []
      return { path: `/proc/${pid}/fd/${fd}`, flags: Number.parseInt(flags, 8) }
    } catch {
      // Closed meanwhile.
      return []
    }
  })
}

describe.skipIf(process.getuid?.() !== 0)('the kernel addon of the executable (skipped without root)', () => {
  it('is one sealed close-on-exec descriptor that all threads share, and no environment variable has an effect on it', async () => {
    const node = new BinaryNode()
    const env = { MODEKEEP_CONFIG: `${node.top}/config.json`, MODEKEEP_KERNEL: '0' }
    // Waits for the mount table in a thread.
    const child = spawn(BINARY, ['heal', '--watch'], { env, stdio: ['ignore', 'ignore', 'pipe'] })
    onTestFinished(() => void child.kill('SIGKILL'))
    let errors = ''
    child.stderr.on('data', (data) => {
      errors += data
    })
    const pid = child.pid ?? 0
    const waits = () => fs.readdirSync(`/proc/${pid}/task`).some((task) => isWaiting(`/proc/${pid}/task/${task}`))
    await until(waits)
    const addons = addonsOf(pid)
    expect(addons.map(({ flags }) => flags & O_CLOEXEC)).toEqual([O_CLOEXEC])
    for (const { path } of addons) expect(() => fs.writeFileSync(path, 'other code')).toThrow('EPERM')
    expect(errors).toBe('')
  })

  it.skipIf(cannot !== '')(addSkipReason('is not inherited by a daemon that modekeep starts', cannot), async () => {
    const node = new FuseNode(['fuse.bindfs'])
    const source = `${node.volumes}/data`
    fs.mkdirSync(source)
    const options = { 'kubernetes.io/fsType': 'fuse.bindfs', source }
    expect(await node.mount('one', options)).toEqual({ status: 'Success' })
    expect(addonsOf(node.daemon('one'))).toEqual([])
  })
})

describe.skipIf(cannotInject !== '')(addSkipReason('loading of the kernel addon', cannotInject), () => {
  // Behind the standard streams and the libraries.
  const file = `/proc/self/fd/${3 + CARRIED_LIBRARIES.length}`
  const run = (...args: string[]) => {
    const strike = ['-f', '-qq', '-o', '/dev/null', '-P', file, '-e', 'inject=openat:error=EIO']
    return spawnSync('strace', [...strike, BINARY, ...args], { encoding: 'utf8' })
  }

  it('a kernel addon that cannot be loaded is reported in one line to a user', () => {
    const said = `error: modekeep cannot start: ${file}: cannot open shared object file: Input/output error\n`
    expect(run('status')).toMatchObject({ status: 1, stdout: '', stderr: said })
  })

  it('a kernel addon that cannot be loaded is reported as Failure to kubelet', () => {
    const { status, stdout, stderr } = run('unmount', '/var/lib/kubelet/pods/a/volumes/modekeep~fs/b')
    expect([status, stderr, JSON.parse(stdout)]).toEqual([
      0,
      '',
      { status: 'Failure', message: expect.stringContaining(file) },
    ])
  })
})

// ppoll(2) is the call that the watching thread alone makes.
const PPOLL = process.arch === 'arm64' ? '73' : '271'

function isWaiting(task: string): boolean {
  return fs.readFileSync(`${task}/syscall`, 'utf8').startsWith(`${PPOLL} `)
}
