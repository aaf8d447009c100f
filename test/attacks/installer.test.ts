import { execFileSync, spawn } from 'node:child_process'
import * as fs from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { execa } from 'execa'
import { expect, it, onTestFinished } from 'vitest'
import {
  BINARY,
  fakeProc,
  listing,
  makeWorld,
  missing,
  needing,
  pluginDir,
  type World,
  writeDriver,
} from '../install/world.ts'

const USER = ['setpriv', '--reuid', '1000', '--regid', '1000', '--clear-groups'] as const

/** Starts a process under the name of a kubelet, as any user. */
async function pretender(prefix: readonly string[], pluginDirectory: string) {
  // tail(1) takes any name for a file's, and stays.
  const script = `exec -a kubelet tail -f /dev/null -- --volume-plugin-dir="$0" 2>/dev/null`
  const [file = '', ...args] = [...prefix, 'bash', '-c', script, pluginDirectory]
  const child = spawn(file, args, { stdio: 'ignore' })
  onTestFinished(() => void child.kill('SIGKILL'))
  while (!fs.readFileSync(`/proc/${child.pid}/cmdline`, 'utf8').startsWith('kubelet')) await sleep(5)
  return child.pid
}

/** A proc directory in which only these processes are to be seen, as they really are. */
function procOf(world: World, ...pids: (number | undefined)[]) {
  fs.mkdirSync(world.proc)
  for (const pid of pids) fs.symlinkSync(`/proc/${pid}`, join(world.proc, String(pid)))
}

async function installs(world: World, ...more: string[]) {
  const args = ['install', '--root', world.root, '--binary', writeDriver(world, 'a'), ...more]
  const { exitCode, stdout, stderr } = await execa(BINARY, args, {
    reject: false,
    timeout: 10_000,
    killSignal: 'SIGKILL',
  })
  return { exitCode, stdout, stderr }
}

needing(missing.root, missing.dist, missing.setpriv).describe('the installer', () => {
  it('ignores a process of another user that looks like a kubelet', async () => {
    const world = makeWorld()
    procOf(world, await pretender(USER, '/evil'))
    const found = await installs(world, '--proc', world.proc)
    expect([found.exitCode, found.stderr]).toEqual([1, expect.stringContaining('no kubelet was found')])
    expect(JSON.stringify(found)).not.toContain('evil')
    expect(listing(world.root)).toHaveLength(1)
  })

  it("uses root's kubelet next to a process of another user that looks like one", async () => {
    const world = makeWorld()
    procOf(world, await pretender(USER, '/evil'), await pretender([], pluginDir))
    const found = await installs(world, '--proc', world.proc)
    expect(found).toMatchObject({ exitCode: 0, stdout: expect.stringContaining(`${world.root}${pluginDir} (kubelet`) })
  })

  it("escapes control characters in a kubelet's arguments", async () => {
    const world = makeWorld()
    fakeProc(world, ['kubelet', '--volume-plugin-dir=plugins\x1b]0;owned\x07\x9b31m\u202e\r\n'])
    const { exitCode, stderr } = await installs(world, '--proc', world.proc, '--dry-run')
    expect([exitCode, stderr]).toEqual([1, expect.stringContaining('\\u{1b}]0;owned\\u{7}')])
    expect(stderr).toMatch(/^[ -~\n]*$/)
  })

  it.each<[string, (file: string) => void, string]>([
    ['is a FIFO', (file) => execFileSync('sh', ['-c', `rm ${file}; mkfifo ${file}`]), 'is no regular file'],
    [
      'is a device with endless content',
      (file) => execFileSync('ln', ['-sf', '/dev/zero', file]),
      'is no regular file',
    ],
    ['is of 1 TiB', (file) => fs.truncateSync(file, 2 ** 40), 'is larger than 1 MiB'],
    [
      "is another user's",
      (file) => fs.chownSync(file, 1000, 1000),
      'belongs to uid 1000 (mode 0644), so it is not used: chown root',
    ],
    [
      'can be written by every user',
      (file) => fs.chmodSync(file, 0o666),
      'can be written by others than its owner (mode 0666, uid 0), so it is not used: chmod go-w',
    ],
  ])('refuses at once, and changes nothing, if --config %s', async (_what, make, says) => {
    const world = makeWorld()
    const file = join(world.base, 'wish.json')
    fs.writeFileSync(file, '{}')
    make(file)
    const { exitCode, stderr } = await installs(world, '--plugin-dir', pluginDir, '--config', file)
    expect([exitCode, stderr]).toEqual([1, expect.stringContaining(`--config: ${file} ${says}`)])
    expect(listing(world.root)).toHaveLength(1)
  })
})
