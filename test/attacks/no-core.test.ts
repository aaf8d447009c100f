import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it, onTestFinished } from 'vitest'
import { MODEKEEP } from '../binary/modekeep.ts'
import { bindFakeProgram } from '../helper/fake-programs.ts'
import { BinaryNode } from '../helpers/kubelet-call.ts'
import { cannotMountWith, requireProgram } from '../helpers/needs.ts'
import { isRoot } from '../helpers/stage.ts'
import { pipeCores } from './piped-cores.ts'

const SECRET = 'hunter2hunter2'
const OPTIONS = JSON.stringify({
  source: '/srv/data',
  'kubernetes.io/secret/password': Buffer.from(SECRET).toString('base64'),
})

/** Ends a program by SIGSEGV, so many seconds after it has begun; returns whether the kernel dumped a core to any target of core_pattern. */
const CRASH = `ulimit -S -c "$(ulimit -H -c)"
delay=$1; shift
"$@" > /dev/null &
# Until execve it is bash, and until its loader has begun no limit is set.
while grep -qz secret "/proc/$!/cmdline" 2> /dev/null; do :; done
sleep "$delay"; kill -s SEGV $!; wait $!`

function crash(delay: number, ...command: string[]) {
  const directory = fs.mkdtempSync(`${tmpdir()}/modekeep-core-`)
  onTestFinished(() => fs.rmSync(directory, { recursive: true }))
  const { stderr, error } = spawnSync('bash', ['-c', CRASH, 'bash', String(delay), ...command], {
    cwd: directory,
    encoding: 'utf8',
    timeout: 60_000,
  })
  if (error) throw error
  return {
    hasCrashed: /Segmentation fault/.test(stderr),
    hasDumped: /core dumped/.test(stderr),
    files: fs.readdirSync(directory),
  }
}

const FORBIDS = `
import { forbidCoreDumps } from '${import.meta.dirname}/../../src/kernel/linux/processes.ts'
import { spawnSync } from 'node:child_process'
forbidCoreDumps()
process.stdout.write(spawnSync('bash', ['-c', 'cat /proc/self/limits; (exec sh -c "kill -s SEGV \\\\$\\\\$"); true'], { encoding: 'utf8' }).output.join(''))`

function helperLimits(...wrapper: string[]): string {
  const [program = '', ...args] = [...wrapper, process.execPath, '--input-type=module', '-e', FORBIDS]
  const { stdout, stderr } = spawnSync(program, args, { encoding: 'utf8', cwd: tmpdir() })
  expect(stderr).toBe('')
  return stdout
}

/** The n-th of a system call, at which strace sends a signal; or milliseconds after the loader has begun. */
type Moment = readonly [call: string, when: number] | number

/** The loader's first call, and others up to the reply. */
const CALLS: readonly Moment[] = [
  ['prctl', 1],
  ['mmap', 8],
  ['mmap', 60],
  ['openat', 1],
  ['openat', 12],
  ['read', 4],
  ['statx', 2],
  ['write', 1],
]
const DELAYS = [0, 2, 5, 10, 20, 40]
const SIGNALS = ['SIGSEGV', 'SIGABRT'] as const
const MOMENTS = [...CALLS, ...DELAYS].flatMap((moment) => SIGNALS.map((signal) => [moment, signal] as const))

const SECRETIVE = [MODEKEEP, 'mount', '/no/such/directory', OPTIONS]

/** @returns the process, if it has ended by that */
async function crashAt(
  moment: Moment,
  signal: NodeJS.Signals,
  command: readonly string[],
): Promise<number | undefined> {
  const inject = (call: string, when: number) => [
    ...['strace', '-D', '-qq', '-o', '/dev/null', '-e', `trace=${call}`],
    ...['-e', `inject=${call}:signal=${signal.replace('SIG', '')}:when=${when}`],
  ]
  const wrapper = typeof moment === 'number' ? [] : inject(...moment)
  const [program = '', ...args] = [...wrapper, ...command]
  const child = spawn(program, args, { stdio: 'ignore' })
  const exited = once(child, 'exit')
  if (typeof moment === 'number') {
    // Its first act is to forbid cores, its second to take its options off /proc/PID/cmdline.
    while (fs.readFileSync(`/proc/${child.pid}/cmdline`, 'utf8').includes('secret')) await sleep(1)
    await sleep(moment)
    child.kill(signal)
  }
  const [, endedBy] = await exited
  return endedBy === signal ? child.pid : undefined
}

/** A helper that knows a secret, and waits. */
const KNOWING =
  'secret=$(cat /proc/self/fd/3); echo $$ > $TOP/new; mv $TOP/new $TOP/waiting; while :; do sleep 0.05; done'

async function processAt(path: string): Promise<number> {
  while (!fs.existsSync(path)) await sleep(5)
  const pid = Number(fs.readFileSync(path, 'utf8'))
  fs.rmSync(path)
  return pid
}

describe('a crash', () => {
  it('of modekeep leaves no core file at any moment', ({ skip }) => {
    if (!fs.existsSync(MODEKEEP)) skip('there is no dist/modekeep: run "npm run build"')
    if (!crash(0.1, 'sleep', '10').hasDumped) skip('this machine lets no program dump core')
    const crashes = [0, 0.002, 0.004, 0.008, 0.012, 0.016, 0.02, 0.03].map((delay) =>
      crash(delay, MODEKEEP, 'mount', '/no/such/directory', OPTIONS),
    )
    for (const { hasDumped, files } of crashes) expect({ hasDumped, files }).toEqual({ hasDumped: false, files: [] })
    expect(crashes.filter(({ hasCrashed }) => hasCrashed).length).toBeGreaterThan(2)
  })

  it('of a program that has secrets leaves no core file', () => {
    const said = helperLimits('prlimit', '--core=4096:1000000')
    expect(said).toMatch(/^Max core file size +1 +1 +bytes/m)
    expect(said).toContain('Segmentation fault')
    expect(said).not.toContain('core dumped')
  })

  it('of modekeep starts no core_pattern program at any moment after its first system call', async ({ skip }) => {
    requireProgram('strace')
    if (!fs.existsSync(MODEKEEP)) skip('there is no dist/modekeep: run "npm run build"')
    const cores = await pipeCores()
    if (typeof cores === 'string') return skip(cores)
    await using _ = cores
    const traced = await crashAt(['clock_nanosleep', 1], 'SIGSEGV', ['sleep', '60'])
    const crashed: number[] = []
    for (const [moment, signal] of MOMENTS) {
      const pid = await crashAt(moment, signal, SECRETIVE)
      if (pid !== undefined) crashed.push(pid)
    }
    await cores.control()
    expect(cores.of(traced ?? 0)?.length).toBeGreaterThan(0)
    expect(crashed.filter((pid) => cores.of(pid) !== undefined)).toEqual([])
    // A call may be over before the latest.
    expect(crashed.length).toBeGreaterThan(MOMENTS.length / 2)
  })

  it('of a program that has secrets starts no core_pattern program, which would receive them', async ({ skip }) => {
    const why = cannotMountWith()
    if (why !== '') skip(why)
    if (!fs.existsSync(MODEKEEP)) skip('there is no dist/modekeep: run "npm run build"')
    const cores = await pipeCores()
    if (typeof cores === 'string') return skip(cores)
    await using _ = cores
    const node = new BinaryNode()
    const programs = `${node.top}/programs`
    fs.mkdirSync(programs)
    fs.writeFileSync(`${programs}/mount.cifs`, `#!/bin/sh\nTOP=${programs}\n${KNOWING}\n`, { mode: 0o755 })
    bindFakeProgram('mount.cifs', programs)
    const config = { stateDir: node.state, logFile: node.log, allow: [{ sources: ['//server/*'], fsTypes: ['cifs'] }] }
    fs.writeFileSync(`${node.top}/config.json`, JSON.stringify(config))
    const options = {
      'kubernetes.io/fsType': 'cifs',
      source: '//server/share',
      'kubernetes.io/secret/username': Buffer.from('bob').toString('base64'),
      'kubernetes.io/secret/password': Buffer.from(SECRET).toString('base64'),
    }
    const crashed: number[] = []
    for (const signal of SIGNALS) {
      const { ended } = node.start(['mount', node.podDirectory('p'), JSON.stringify(options)])
      const pid = await processAt(`${programs}/waiting`)
      process.kill(pid, signal)
      expect((await ended).text).toContain(`mount.cifs was ended by ${signal}`)
      crashed.push(pid)
    }
    // The same program, started by another process.
    const secretFile = `${node.top}/secret`
    fs.writeFileSync(secretFile, SECRET)
    const fd = fs.openSync(secretFile, 'r')
    const other = spawn(`${programs}/mount.cifs`, { stdio: ['ignore', 'ignore', 'ignore', fd] })
    fs.closeSync(fd)
    process.kill(await processAt(`${programs}/waiting`), 'SIGSEGV')
    await once(other, 'exit')
    await cores.control()
    expect(cores.of(other.pid ?? 0)?.includes(SECRET)).toBe(true)
    expect(crashed.map((pid) => cores.of(pid))).toEqual([undefined, undefined])
  })

  it('leaves no core file either if the caller has set the hard limit to 0', () => {
    const wrapper = isRoot ? ['setpriv', '--bounding-set=-sys_resource'] : []
    expect(helperLimits(...wrapper, 'prlimit', '--core=0:0')).toMatch(/^Max core file size +0 +0 +bytes/m)
  })
})
