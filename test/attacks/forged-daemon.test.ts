import { execFileSync, spawn } from 'node:child_process'
import * as fs from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it, onTestFinished } from 'vitest'
import { MARK } from '../../src/host/helpers.ts'
import { linuxDaemons, statOf } from '../../src/host/linux/processes.ts'
import { needed } from '../helpers/needs.ts'
import { isRoot } from '../helpers/stage.ts'

const why = isRoot ? '' : 'other users\' processes need root; run "sudo npm test"'
const STAGES = '/var/lib/modekeep-attacked/staging'
const STAGED = `${STAGES}/12-x/mount`

/** A process with a daemon's arguments and mark. @returns its id, when it runs under its own name */
async function forged(command: readonly [string, ...string[]], mark: Record<string, string> = { [MARK]: '1-2-3' }) {
  const [program, ...args] = command
  const child = spawn(program, args, { env: { PATH: process.env.PATH, ...mark }, stdio: 'ignore', detached: true })
  const pid = child.pid ?? 0
  onTestFinished(() => void child.kill('SIGKILL'))
  while (!fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8').startsWith('forged')) await sleep(5)
  return pid
}

const asUser = (...ids: string[]) => ['setpriv', ...ids, '--clear-groups', 'bash', '-p', '-c', TAIL] as const
// `tail` takes any arguments, and stays.
const TAIL = `exec -a forged tail -f /dev/null ${STAGED} 2>/dev/null`

const isAlive = (pid: number) => statOf(pid) !== undefined

describe.skipIf(why !== '')(`a process that pretends to be a FUSE daemon${why && ` (skipped: ${why})`}`, () => {
  it.each([
    ['with every id of another user', ['--reuid', '1000', '--regid', '1000']],
    ['with the real id of another user alone', ['--ruid', '1000']],
    ['with the effective id of another user alone', ['--euid', '1000']],
  ])('%s is neither found nor signalled', async (_ids, ids) => {
    const pid = await forged(asUser(...ids))
    expect(linuxDaemons.find(STAGED)).toBeUndefined()
    expect(linuxDaemons.below(STAGES)).toEqual([])
    linuxDaemons.kill(`${STAGES}/12-x`)
    await sleep(50)
    expect(isAlive(pid)).toBe(true)
  })

  it('by a set-uid program of root, with all the arguments and variables of its caller, is neither', async () => {
    const place = fs.mkdtempSync(`${process.env.TMPDIR ?? '/tmp'}/set-uid-`)
    fs.chmodSync(place, 0o755)
    onTestFinished(() => fs.rmSync(place, { recursive: true }))
    fs.writeFileSync(
      `${place}/lent.c`,
      '#define _GNU_SOURCE\n#include <unistd.h>\nint main(void) { return setresuid(0, 0, 0) || setresgid(0, 0, 0) || pause(); }\n',
    )
    execFileSync(needed('cc'), ['-o', `${place}/lent`, `${place}/lent.c`])
    fs.chmodSync(`${place}/lent`, 0o4755)
    const start = `exec -a forged ${place}/lent ${STAGED}`
    const pid = await forged(['setpriv', '--reuid', '1000', '--regid', '1000', '--clear-groups', 'bash', '-c', start])
    while (!/^Uid:\t0\t0\t0\t0$/m.test(fs.readFileSync(`/proc/${pid}/status`, 'utf8'))) await sleep(5)
    expect(linuxDaemons.find(STAGED)).toBeUndefined()
    linuxDaemons.kill(STAGES)
    await sleep(50)
    expect(isAlive(pid)).toBe(true)
  })

  it('but for its mark is neither; with it, it is the one that modekeep started', async () => {
    const unmarked = await forged(['bash', '-c', TAIL], {})
    expect(linuxDaemons.find(STAGED)).toBeUndefined()
    const marked = await forged(['bash', '-c', TAIL])
    expect(linuxDaemons.find(STAGED)).toMatchObject({ pid: marked })
    expect(linuxDaemons.below(STAGES)).toEqual([marked])
    linuxDaemons.kill(STAGES)
    while (isAlive(marked)) await sleep(5)
    expect(isAlive(unmarked)).toBe(true)
  })
})
