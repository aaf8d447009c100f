import { spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { describe, expect, it, onTestFinished } from 'vitest'
import { MODEKEEP } from '../binary/modekeep.ts'
import { isRoot } from '../helpers/stage.ts'

const SECRET = 'hunter2hunter2'
const OPTIONS = JSON.stringify({
  source: '/srv/data',
  'kubernetes.io/secret/password': Buffer.from(SECRET).toString('base64'),
})

/** Ends a program by SIGSEGV after so many seconds; says whether the kernel dumped a core, wherever core_pattern sends it. */
const CRASH = `ulimit -S -c "$(ulimit -H -c)"
delay=$1; shift
"$@" > /dev/null & sleep "$delay"; kill -s SEGV $!; wait $!`

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
import { forbidCoreDumps } from '${import.meta.dirname}/../../src/host/linux/secrets.ts'
import { spawnSync } from 'node:child_process'
forbidCoreDumps()
process.stdout.write(spawnSync('bash', ['-c', 'cat /proc/self/limits; (exec sh -c "kill -s SEGV \\\\$\\\\$"); true'], { encoding: 'utf8' }).output.join(''))`

function helperLimits(...wrapper: string[]): string {
  const [program = '', ...args] = [...wrapper, process.execPath, '--input-type=module', '-e', FORBIDS]
  const { stdout, stderr } = spawnSync(program, args, { encoding: 'utf8', cwd: tmpdir() })
  expect(stderr).toBe('')
  return stdout
}

describe('a crash', () => {
  it('of modekeep leaves no core at any moment, in a file or for a program', ({ skip }) => {
    if (!fs.existsSync(MODEKEEP)) skip('there is no dist/modekeep: run "npm run build"')
    if (!crash(0.1, 'sleep', '10').hasDumped) skip('this machine lets no program dump core')
    const crashes = [0, 0.002, 0.004, 0.008, 0.012, 0.016, 0.02, 0.03].map((delay) =>
      crash(delay, MODEKEEP, 'mount', '/no/such/directory', OPTIONS),
    )
    for (const { hasDumped, files } of crashes) expect({ hasDumped, files }).toEqual({ hasDumped: false, files: [] })
    expect(crashes.filter(({ hasCrashed }) => hasCrashed).length).toBeGreaterThan(2)
  })

  it('of a program that has secrets leaves no core', () => {
    const said = helperLimits('prlimit', '--core=4096:1000000')
    expect(said).toMatch(/^Max core file size +1 +1 +bytes/m)
    expect(said).toContain('Segmentation fault')
    expect(said).not.toContain('core dumped')
  })

  it('is no matter of a limit that the caller has set to 0 for good', () => {
    const wrapper = isRoot ? ['setpriv', '--bounding-set=-sys_resource'] : []
    expect(helperLimits(...wrapper, 'prlimit', '--core=0:0')).toMatch(/^Max core file size +0 +0 +bytes/m)
  })
})
