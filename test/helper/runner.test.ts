import * as fs from 'node:fs'
import { describe, expect, it } from 'vitest'
import { Refusal } from '../../src/errors/refusal.ts'
import { HelperError } from '../../src/kernel/helpers.ts'
import { FakePrograms, findProcessesWith, readFailureMessage } from './fake-programs.ts'

const LATE = "did not end within 1 s (helperTimeoutSeconds in the node's modekeep configuration) and was ended"

function isRunning(pid: string): boolean {
  try {
    return !/^State:\s+[ZX]/m.test(fs.readFileSync(`/proc/${pid.trim()}/status`, 'utf8'))
  } catch {
    return false
  }
}

describe('a helper program', () => {
  it("gets its arguments unchanged without a shell, and nothing of modekeep's environment", async () => {
    const programs = new FakePrograms()
    programs.add('record', 'printf "%s|" "$@" > $TOP/argv; cat /proc/self/environ > $TOP/environment; pwd > $TOP/cwd')
    const args = ['a b', '$HOME', '`id`', "'", '"', ';', '*', '', '-o', 'x\ny']
    await programs.run('record', { args, environment: { EXTRA: 'yes' } })
    expect(programs.read('argv')).toBe(`${args.join('|')}|`)
    const names = programs.read('environment').split('\0').filter(Boolean).sort()
    // The shell of the fake program adds PWD.
    expect(names.filter((name) => !name.startsWith('PWD='))).toEqual([
      'EXTRA=yes',
      'LC_ALL=C',
      expect.stringMatching(/^MODEKEEP_HELPER=[0-9.-]+$/),
      expect.stringMatching(/^PATH=.*:\/usr\/sbin:\/usr\/bin:\/sbin:\/bin:\/usr\/local\/sbin:\/usr\/local\/bin$/),
    ])
    expect(programs.read('cwd')).toBe('/\n')
  })

  it('reads its stdin to the end, or an empty stdin', async () => {
    const programs = new FakePrograms()
    programs.add('input', 'cat > $TOP/got')
    await programs.run('input', { input: Buffer.from('one\0two') })
    expect(programs.read('got')).toBe('one\0two')
    await programs.run('input')
    expect(programs.read('got')).toBe('')
  })

  it('may exit without reading its stdin', async () => {
    const programs = new FakePrograms()
    programs.add('deaf', 'exec 0<&-; exit 0')
    await programs.run('deaf', { input: Buffer.alloc(1_000_000) })
  })

  it('has its own session, and no other descriptors of this process', async () => {
    const programs = new FakePrograms()
    programs.add('look', 'cut -d" " -f1,5,6 /proc/$$/stat > $TOP/ids; ls /proc/$$/fd > $TOP/fds')
    const held = fs.openSync('/etc/passwd', 'r')
    await programs.run('look')
    fs.closeSync(held)
    const [pid, group, session] = programs.read('ids').trim().split(' ')
    expect([group, session]).toEqual([pid, pid])
    // 10 is the shell's own script.
    expect(
      programs
        .read('fds')
        .trim()
        .split('\n')
        .filter((fd) => Number(fd) < 10),
    ).toEqual(['0', '1', '2'])
  })

  it('that fails is reported with its exit status and output, on one line without control characters', async () => {
    const programs = new FakePrograms()
    programs.add('fails', String.raw`printf 'out\n'; printf '\033[31mmount: "bad"\r\n\tthing\0\n' >&2; exit 32`)
    const work = programs.run('fails')
    await expect(work).rejects.toThrow(HelperError)
    await expect(work).rejects.toThrow(Refusal)
    expect(await readFailureMessage(work)).toMatch(/^fails failed with exit status 32: /)
    expect(await readFailureMessage(work)).toContain('[31mmount: "bad" thing')
    expect(await readFailureMessage(work)).not.toMatch(/\p{Cc}/u)
  })

  it('that fails without output is reported as failed without output', async () => {
    const programs = new FakePrograms()
    programs.add('silent', 'exit 3')
    expect(await readFailureMessage(programs.run('silent'))).toBe('silent failed with exit status 3: it said nothing')
  })

  it('that is killed is reported with the name of the signal', async () => {
    const programs = new FakePrograms()
    programs.add('dies', 'echo so far; kill -SEGV $$')
    expect(await readFailureMessage(programs.run('dies'))).toBe('dies was ended by SIGSEGV: so far')
  })

  it.each([
    ['mount.nfs', 'install the package nfs-common (Debian) or nfs-utils (RPM)'],
    ['mount.nfs4', 'install the package nfs-common (Debian) or nfs-utils (RPM)'],
    ['mount.cifs', 'install the package cifs-utils'],
    ['sshfs', 'install the package sshfs (Debian) or fuse-sshfs (RPM)'],
    ['bindfs', 'install the package bindfs'],
    ['squashfuse', 'install the package squashfuse'],
    ['s3fs', 'install the package s3fs (Debian) or s3fs-fuse (RPM)'],
    ['rclone', 'install the package rclone'],
    ['rclonefs', 'install the package rclone and link it (ln -s rclone /usr/bin/rclonefs)'],
    ['gocryptfs', 'install the package gocryptfs'],
    ['mergerfs', 'install the package mergerfs'],
    ['fusermount3', 'install the package fuse3'],
    ['constructor', 'install it'],
  ])('that is missing is reported with its package: %s', async (program, way) => {
    const programs = new FakePrograms([])
    expect(await readFailureMessage(programs.run(program))).toBe(
      `${program} is not on this node: it is looked for in ${programs.top}; ${way}`,
    )
  })

  it.each([['../bin/sh'], ['/bin/sh'], ['-x'], ['']])('is refused if its name is a path: %j', async (program) => {
    expect(await readFailureMessage(new FakePrograms().run(program))).toBe(
      `the program name ${program} is not a bare file name`,
    )
  })

  it('that is not executable, or not a program, is reported', async () => {
    const programs = new FakePrograms()
    programs.add('plain', 'exit 0', 0o644)
    expect(await readFailureMessage(programs.run('plain'))).toBe(
      `${programs.top}/plain is not executable: install its package again`,
    )
    fs.writeFileSync(`${programs.top}/rubbish`, '#!/no/interpreter\n', { mode: 0o755 })
    expect(await readFailureMessage(programs.run('rubbish'))).toBe(
      'rubbish could not be started (ENOENT): install its package again',
    )
  })
})

describe('a hostile helper', () => {
  it('that hangs is ended after its time limit', async () => {
    const programs = new FakePrograms()
    programs.add('hangs', 'echo begun; echo $$ > $TOP/pid; sleep 1000')
    expect(await readFailureMessage(programs.run('hangs', { timeoutSeconds: 1 }))).toBe(`hangs ${LATE}: begun`)
    expect(isRunning(programs.read('pid'))).toBe(false)
  })

  it('that ignores SIGTERM is killed with its children', async () => {
    const programs = new FakePrograms()
    programs.add(
      'stubborn',
      "trap '' TERM; sleep 1000 & echo $! > $TOP/child; echo $$ > $TOP/pid; wait; wait; sleep 1000",
    )
    expect(await readFailureMessage(programs.run('stubborn', { timeoutSeconds: 1 }))).toBe(
      `stubborn ${LATE}: it said nothing`,
    )
    expect([programs.read('pid'), programs.read('child')].filter(isRunning)).toEqual([])
  })

  it('is ended with a child that has moved to another session', async () => {
    const programs = new FakePrograms()
    programs.add(
      'flees',
      'setsid sh -c "echo \\$\\$ > $TOP/child; exec sleep 1000" & while ! [ -s $TOP/child ]; do sleep 0.05; done; exit 1',
    )
    expect(await readFailureMessage(programs.run('flees'))).toBe('flees failed with exit status 1: it said nothing')
    expect(isRunning(programs.read('child'))).toBe(false)
  })

  it('whose child keeps stdout open does not block the call, and the child is ended', async () => {
    const programs = new FakePrograms()
    programs.add('forks', 'sleep 1000 & echo $! > $TOP/child; exit 0')
    await programs.run('forks')
    expect(isRunning(programs.read('child'))).toBe(false)
  })

  it('that is permitted to start a daemon keeps the daemon running', async () => {
    const programs = new FakePrograms()
    programs.add('serves', 'sleep 1000 & echo $! > $TOP/child; exit 0')
    await programs.run('serves', { leavesDaemon: true })
    const child = programs.read('child')
    expect(isRunning(child)).toBe(true)
    process.kill(Number(child), 'SIGKILL')
  })

  it("that prints 300 MB does not block and uses little memory, and the message has the output's beginning and end", async () => {
    const programs = new FakePrograms()
    programs.add(
      'loud',
      'echo the beginning >&2; head -c 300000000 /dev/zero | tr "\\0" x >&2; echo the end >&2; exit 1',
    )
    const before = process.memoryUsage().rss
    const message = await readFailureMessage(programs.run('loud'))
    expect(message).toMatch(/^loud failed with exit status 1: the beginning x+ … x+the end$/)
    expect(Buffer.byteLength(message)).toBeLessThan(700)
    expect(process.memoryUsage().rss - before).toBeLessThan(150_000_000)
  })

  it('that has secrets and prints 10 MB is quoted only with harmless texts of a fixed list', async () => {
    const programs = new FakePrograms()
    programs.add('loud', 'head -c 10000000 /dev/zero | tr "\\0" x >&2; echo no route TO HOST, x >&2; exit 1')
    const before = process.memoryUsage().rss
    const message = await readFailureMessage(programs.run('loud', { secrets: [Buffer.from('hunter2')] }))
    expect(message).toBe(
      'loud failed with exit status 1: No route to host (the rest of its output is not shown, as it had secrets)',
    )
    expect(process.memoryUsage().rss - before).toBeLessThan(150_000_000)
  })

  it('that keeps printing after its time limit is ended', async () => {
    const programs = new FakePrograms()
    programs.add('endless', 'echo $$ > $TOP/pid; exec yes')
    expect(await readFailureMessage(programs.run('endless', { timeoutSeconds: 1 }))).toContain(LATE)
    expect(isRunning(programs.read('pid'))).toBe(false)
  })

  it("leaves no process with the helper's mark in its environment", () => {
    expect(findProcessesWith(`MODEKEEP_HELPER=${process.pid}-`)).toEqual([])
  })
})
