import { execFileSync, spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { describe, expect, it, onTestFinished } from 'vitest'
import { MODEKEEP, understood } from '../binary/modekeep.ts'
import { isRoot } from '../helpers/stage.ts'

const skipReason = fs.existsSync(MODEKEEP) ? '' : ' (skipped: run "npm run build")'

const CALLS = [
  ['init'],
  ['mount', '/no/such/directory', '{}'],
  ['unmount', '/no/such/directory'],
  ['getvolumename', '{}'],
  ['attach', '{}', 'node'],
  ['waitforattach', '/dev/x', '{}'],
  ['isattached', '{}', 'node'],
  ['detach', '/dev/x', 'node'],
  ['mountdevice', '/no/such/directory', '/dev/x', '{}'],
  ['unmountdevice', '/no/such/directory'],
  ['expandvolume', '{}', '/dev/x', '/no/such/directory', '2', '1'],
  ['expandfs', '{}', '/dev/x', '/no/such/directory', '2', '1'],
]

/** Limits with which a bare Node aborts or is killed, and what modekeep needs. */
const SMALL: readonly [name: string, values: readonly number[], needed: string][] = [
  ['as', [125 << 20, 256 << 20, 2 ** 30], '4294967296 bytes'],
  ['data', [1 << 20, 64 << 20, 400 << 20], '2147483648 bytes'],
  ['stack', [32 << 10, 64 << 10], '1048576 bytes'],
  ['fsize', [0, 1024, 1 << 20], '67108864 bytes'],
  ['cpu', [1, 30], '60 seconds'],
  ['nofile', [0, 3, 4, 12, 18, 60], '256 files'],
]
const EACH = SMALL.flatMap(([name, values, needed]) => values.map((value) => [name, value, needed] as const))

/** Without the right to raise a hard limit, which root has on a node. */
const UNPRIVILEGED = isRoot ? ['setpriv', '--bounding-set=-sys_resource'] : ['env']

function answerTo(args: readonly string[], ...wrapper: string[]): Record<string, unknown> {
  const [program = '', ...rest] = [...wrapper, MODEKEEP, ...args]
  const { status, stdout, stderr, error } = spawnSync(program, rest, { encoding: 'utf8', timeout: 60_000 })
  if (error) throw error
  return understood({ text: stdout + stderr, code: status })
}

const usual = new Map<readonly string[], unknown>()
function usualAnswerTo(call: readonly string[]): unknown {
  if (!usual.has(call)) usual.set(call, answerTo(call))
  return usual.get(call)
}

describe.skipIf(skipReason !== '')(`a small limit${skipReason}`, () => {
  it.each(EACH)(
    'RLIMIT_%s of %i that cannot be raised is named in one JSON reply by every verb',
    (name, value, needed) => {
      const limit = `RLIMIT_${name.toUpperCase()}`
      for (const call of CALLS) {
        const { status, message } = answerTo(call, ...UNPRIVILEGED, 'prlimit', `--${name}=${value}`)
        expect(status).toBe('Failure')
        expect(message).toMatch(new RegExp(`^modekeep: cannot start: the limit ${limit} is ${value} `))
        expect(message).toContain(`: ${needed} are needed; raise it for what starts modekeep`)
        expect(message).toContain(`${limit.replace('RLIMIT_', 'Limit')}=infinity`)
      }
    },
  )

  it.each([
    ['restore', '/no/such/directory'],
    ['heal'],
    ['csi'],
    ['install'],
    ['--version'],
    ['moun'],
    ['mounts'],
    [' '],
    [],
  ])('a start that fails has status 1 for a verb that is not of kubelet: %j', (...call) => {
    const [program = '', ...args] = [...UNPRIVILEGED, 'prlimit', '--nofile=60', MODEKEEP, ...call]
    const { status, stdout } = spawnSync(program, args, { encoding: 'utf8' })
    expect([status, JSON.parse(stdout)]).toEqual([1, { status: 'Failure', message: expect.stringContaining('NOFILE') }])
  })

  it.each(EACH)('RLIMIT_%s of %i is raised if that is permitted', (name, value) => {
    for (const call of CALLS.slice(0, 3)) {
      expect(answerTo(call, ...UNPRIVILEGED, 'prlimit', `--${name}=${value}:`)).toEqual(usualAnswerTo(call))
    }
  })

  it.each(isRoot ? [1, 5, 12, 16] : [])('RLIMIT_NPROC of %i is detected before Node starts its threads', (value) => {
    const directory = fs.mkdtempSync(`${tmpdir()}/modekeep-limits-`)
    onTestFinished(() => fs.rmSync(directory, { recursive: true }))
    fs.chmodSync(directory, 0o755)
    fs.copyFileSync(MODEKEEP, `${directory}/modekeep`, fs.constants.COPYFILE_FICLONE)
    const user = ['--reuid', '64322', '--regid', '64322', '--clear-groups']
    const run = (limit: string, call: readonly string[]) => {
      const { status, stdout } = spawnSync(
        'setpriv',
        [...user, 'prlimit', `--nproc=${limit}`, `${directory}/modekeep`, ...call],
        { encoding: 'utf8', timeout: 60_000 },
      )
      return understood({ text: stdout, code: status })
    }
    for (const call of CALLS) {
      expect(run(`${value}:${value}`, call)).toEqual({
        status: 'Failure',
        message: expect.stringContaining(
          `the limit RLIMIT_NPROC is ${value}, and modekeep may not raise it: room for 16`,
        ),
      })
    }
    expect(run(`${value}:4096`, ['init'])).toMatchObject({ status: 'Success' })
  })
})

describe.skipIf(skipReason !== '')(`the environment${skipReason}`, () => {
  it.each(['', ':'])('with TZ=%s and the path of a FIFO does not make a call hang', (prefix) => {
    const directory = fs.mkdtempSync(`${tmpdir()}/modekeep-limits-`)
    onTestFinished(() => fs.rmSync(directory, { recursive: true }))
    execFileSync('mkfifo', [`${directory}/zone`])
    for (const path of [`${directory}/zone`, `../../..${directory}/zone`]) {
      for (const call of CALLS) {
        const { status, stdout, signal } = spawnSync(MODEKEEP, call, {
          env: { TZ: `${prefix}${path}` },
          encoding: 'utf8',
          timeout: 20_000,
        })
        expect(signal).toBe(null)
        expect(understood({ text: stdout, code: status })).toEqual(usualAnswerTo(call))
      }
    }
  })
})
