import { spawn, spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { cannotMountWith } from '../helpers/needs.ts'

const INSTALLER = resolve(import.meta.dirname, '../../scripts/test/install-packages.sh')
const OWN = '#!/bin/sh\nexit 0\n'
const skipReason = cannotMountWith()

/** A machine whose /usr/sbin and apt-get are the test's: it says what a server that is installed would be told. */
function machine(policy: string | undefined, install: string) {
  const top = fs.mkdtempSync(join(tmpdir(), 'modekeep-apt-'))
  onTestFinished(() => fs.rmSync(top, { recursive: true }))
  const [sbin, bin] = [join(top, 'sbin'), join(top, 'bin')]
  for (const directory of [sbin, bin]) fs.mkdirSync(directory)
  if (policy !== undefined) fs.writeFileSync(join(sbin, 'policy-rc.d'), policy, { mode: 0o755 })
  const apt = `#!/bin/sh\n[ "$1" = install ] || exit 0\n${install}\n`
  fs.writeFileSync(join(bin, 'apt-get'), apt, { mode: 0o755 })
  const script = `mount --bind ${sbin} /usr/sbin && exec ${INSTALLER} one two`
  const args = ['--mount', '--propagation', 'private', 'sh', '-c', script]
  const env = { ...process.env, PATH: `${bin}:${process.env.PATH}` }
  return { top, args, options: { env, cwd: top }, policy: join(sbin, 'policy-rc.d') }
}

const ASKED = '/usr/sbin/policy-rc.d sshd start; echo "$?" >asked; echo "$*" >told'

describe.skipIf(skipReason !== '')(`the packages of the tests${skipReason && ` (skipped: ${skipReason})`}`, () => {
  it('are installed without starting servers, and the policy file is removed', () => {
    const { top, args, options, policy } = machine(undefined, ASKED)
    expect(spawnSync('unshare', args, options).status).toBe(0)
    expect(fs.readFileSync(join(top, 'asked'), 'utf8')).toBe('101\n')
    expect(fs.readFileSync(join(top, 'told'), 'utf8')).toContain(' one two')
    expect(fs.existsSync(policy)).toBe(false)
  })

  it("are installed without changing the machine's own policy", () => {
    const { top, args, options, policy } = machine(OWN, ASKED)
    expect(spawnSync('unshare', args, options).status).toBe(0)
    expect(fs.readFileSync(join(top, 'asked'), 'utf8')).toBe('101\n')
    expect(fs.readFileSync(policy, 'utf8')).toBe(OWN)
  })

  it('make the run fail if they cannot be installed, and leave nothing', () => {
    const { args, options, policy } = machine(undefined, 'exit 100')
    expect(spawnSync('unshare', args, options).status).toBe(100)
    expect(fs.existsSync(policy)).toBe(false)
  })

  it.each(['SIGTERM', 'SIGINT', 'SIGHUP'] as const)(
    'leave no policy file if %s interrupts their installation',
    async (signal) => {
      const { top, args, options, policy } = machine(undefined, 'touch begun; sleep 1; touch ended')
      const child = spawn('unshare', args, { ...options, stdio: 'ignore' })
      const ended = new Promise<number | null>((done) => child.once('close', done))
      await expect.poll(() => fs.existsSync(join(top, 'begun')), { timeout: 600_000 }).toBe(true)
      expect(fs.existsSync(policy)).toBe(true)
      child.kill(signal)
      expect(await ended).toBe(130)
      // apt-get is not left halfway.
      expect(fs.existsSync(join(top, 'ended'))).toBe(true)
      expect(fs.existsSync(policy)).toBe(false)
    },
  )
})
