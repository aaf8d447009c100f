import { execFileSync, spawn } from 'node:child_process'
import * as fs from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { HELPER_MARK_VARIABLE } from '../../src/kernel/helpers.ts'
import { linuxDaemons } from '../../src/kernel/linux/daemons.ts'
import { linuxHost } from '../../src/kernel/linux/index.ts'
import { readProcessStat } from '../../src/kernel/linux/processes.ts'
import { mountRecords } from '../../src/state/mount-record.ts'
import { cannotServe, FuseNode, killDaemon, until } from '../helpers/fuse-node.ts'
import { addSkipReason, requireProgram } from '../helpers/needs.ts'
import { isRoot } from '../helpers/stage.ts'

const skipReason = isRoot ? '' : 'other users\' processes need root; run "sudo npm test"'
const STAGES = '/var/lib/modekeep-attacked/staging'
const STAGED = `${STAGES}/12-x/mount`

/** A process with a daemon's arguments and mark. @returns its id, when it runs under its own name */
async function forged(
  command: readonly [string, ...string[]],
  mark: Record<string, string> = { [HELPER_MARK_VARIABLE]: '1-2-3' },
) {
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

const isAlive = (pid: number) => readProcessStat(pid) !== undefined

describe.skipIf(skipReason !== '')(
  `a process that pretends to be a FUSE daemon${skipReason && ` (skipped: ${skipReason})`}`,
  () => {
    it.each([
      ['with every id of another user', ['--reuid', '1000', '--regid', '1000']],
      ['with only the real id of another user', ['--ruid', '1000']],
      ['with only the effective id of another user', ['--euid', '1000']],
    ])('%s is neither found nor signalled', async (_ids, ids) => {
      const pid = await forged(asUser(...ids))
      expect(linuxDaemons.find(STAGED)).toBeUndefined()
      expect(linuxDaemons.below(STAGES)).toEqual([])
      linuxDaemons.kill(`${STAGES}/12-x`)
      await sleep(50)
      expect(isAlive(pid)).toBe(true)
    })

    it("as a set-uid program of root with its caller's arguments and variables is neither found nor killed", async () => {
      const place = fs.mkdtempSync(`${process.env.TMPDIR ?? '/tmp'}/set-uid-`)
      fs.chmodSync(place, 0o755)
      onTestFinished(() => fs.rmSync(place, { recursive: true }))
      fs.writeFileSync(
        `${place}/lent.c`,
        '#define _GNU_SOURCE\n#include <unistd.h>\nint main(void) { return setresuid(0, 0, 0) || setresgid(0, 0, 0) || pause(); }\n',
      )
      execFileSync(requireProgram('cc'), ['-o', `${place}/lent`, `${place}/lent.c`])
      fs.chmodSync(`${place}/lent`, 0o4755)
      const start = `exec -a forged ${place}/lent ${STAGED}`
      const pid = await forged(['setpriv', '--reuid', '1000', '--regid', '1000', '--clear-groups', 'bash', '-c', start])
      while (!/^Uid:\t0\t0\t0\t0$/m.test(fs.readFileSync(`/proc/${pid}/status`, 'utf8'))) await sleep(5)
      expect(linuxDaemons.find(STAGED)).toBeUndefined()
      linuxDaemons.kill(STAGES)
      await sleep(50)
      expect(isAlive(pid)).toBe(true)
    })

    it("is not found without modekeep's mark in its environment; with the mark it counts as started by modekeep", async () => {
      const unmarked = await forged(['bash', '-c', TAIL], {})
      expect(linuxDaemons.find(STAGED)).toBeUndefined()
      const marked = await forged(['bash', '-c', TAIL])
      expect(linuxDaemons.find(STAGED)).toMatchObject({ pid: marked })
      expect(linuxDaemons.below(STAGES)).toEqual([{ pid: marked, start: readProcessStat(marked)?.start }])
      linuxDaemons.kill(STAGES)
      while (isAlive(marked)) await sleep(5)
      expect(isAlive(unmarked)).toBe(true)
    })

    it('as root with the mark is neither found nor killed if the recorded daemons are known', async () => {
      const daemon = await forged(['bash', '-c', TAIL])
      const known = linuxDaemons.below(STAGES)
      const copy = await forged(['bash', '-c', TAIL])
      expect(linuxDaemons.below(STAGES)).toHaveLength(2)
      expect(linuxDaemons.find(STAGED, known)).toMatchObject({ pid: daemon })
      linuxDaemons.kill(`${STAGES}/12-x`, known)
      while (isAlive(daemon)) await sleep(5)
      expect(linuxDaemons.find(STAGED, known)).toBeUndefined()
      // It may get the number of one that has ended, but not its time.
      expect(linuxDaemons.find(STAGED, [{ pid: copy, start: '1' }])).toBeUndefined()
      linuxDaemons.kill(`${STAGES}/12-x`, known)
      linuxDaemons.kill(`${STAGES}/12-x`, [{ pid: copy, start: '1' }])
      await sleep(50)
      expect(isAlive(copy)).toBe(true)
      expect(linuxDaemons.find(STAGED)).toMatchObject({ pid: copy })
    })
  },
)

const cannot = cannotServe('bindfs')

describe.skipIf(cannot !== '')(
  addSkipReason("a process of root with a copy of a daemon's arguments and variables", cannot),
  () => {
    let node: FuseNode
    let directory: string
    let daemon: number
    let copy: number
    beforeEach(async () => {
      node = new FuseNode(['fuse.bindfs'])
      directory = node.podDirectory('one')
      const source = `${node.volumes}/data`
      fs.mkdirSync(source)
      expect(await node.mount('one', { 'kubernetes.io/fsType': 'fuse.bindfs', source })).toEqual({ status: 'Success' })
      daemon = node.daemon('one')
      const texts = (file: string) => fs.readFileSync(`/proc/${daemon}/${file}`, 'utf8').split('\0').filter(Boolean)
      const staged = texts('cmdline').find((argument) => argument.endsWith('/mount'))
      const variables = texts('environ').map((text) => [text.replace(/=.*/s, ''), text.replace(/^[^=]*=/, '')])
      const start = `exec -a forged tail -f /dev/null ${staged} 2>/dev/null`
      copy = await forged(['bash', '-c', start], Object.fromEntries(variables))
    })

    it('does not count as the dead daemon for status or heal, and keeps running', async () => {
      await killDaemon(node, 'one')
      expect(node.status('one')).toMatchObject({ state: 'stale', daemon: { pid: null, state: 'dead' } })
      expect(node.heal()).toMatchObject([{ state: 'stale', action: 'replaced' }])
      expect(node.status('one')).toMatchObject({ state: 'healthy', daemon: { state: 'alive' } })
      expect(node.daemon('one')).not.toBe(copy)
      expect(await node.unmount('one')).toEqual({ status: 'Success' })
      expect(isAlive(copy)).toBe(true)
    })

    it('is not ended in place of the daemon, neither with the mount nor when it is stopped', async () => {
      process.kill(copy, 'SIGSTOP')
      process.kill(daemon, 'SIGSTOP')
      expect(node.status('one')).toMatchObject({ daemon: { pid: daemon, state: 'stopped' } })
      expect(await node.unmount('one')).toEqual({ status: 'Success' })
      await until(() => !isAlive(daemon))
      expect(isAlive(copy)).toBe(true)
    })

    it('counts as the daemon if the record is of a version that recorded no process numbers', async () => {
      const store = { host: linuxHost, config: { stateDir: node.state } }
      const record = mountRecords.read(store, directory) ?? expect.unreachable()
      expect(record.daemons).toEqual([
        { staging: record.staging, processes: [{ pid: daemon, start: readProcessStat(daemon)?.start }] },
      ])
      mountRecords.write(store, { ...record, daemons: undefined })
      await killDaemon(node, 'one')
      expect(node.status('one')).toMatchObject({ daemon: { pid: copy, state: 'alive' } })
      process.kill(copy, 'SIGSTOP')
      expect(await node.unmount('one')).toEqual({ status: 'Success' })
      await until(() => !isAlive(copy))
    })
  },
)
