import { spawn, spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { BinaryNode } from '../../helpers/kubelet-call.ts'
import { makeSource, POD_GROUP, run, walkAndRestore } from '../cases/node.ts'

const PROFILE = 'modekeep-fuse'

/** Runs a program confined by the shipped profile. @returns its stderr, empty on success */
function runConfined(...args: string[]): string {
  const { status, stderr } = spawnSync('aa-exec', ['-p', PROFILE, '--', ...args], { encoding: 'utf8' })
  return status === 0 ? '' : stderr
}

function makeDirectory(path: string): string {
  fs.mkdirSync(path, { recursive: true })
  return path
}

/** Starts a FUSE daemon in the profile. @returns whether it serves, and what it wrote to stderr */
async function serveConfined(directory: string): Promise<{ isServing: boolean; errors: string }> {
  const server = `${import.meta.dirname}/../../helpers/hanging-server.ts`
  const child = spawn('aa-exec', ['-p', PROFILE, '--', process.execPath, server, directory, '/none', 'all'])
  let errors = ''
  child.stderr.on('data', (data) => {
    errors += data
  })
  const ended = new Promise<boolean>((done) => child.once('close', () => done(false)))
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await ended
  })
  const isServing = await Promise.race([
    new Promise<boolean>((done) => child.stdout.once('data', () => done(true))),
    ended,
  ])
  return { isServing, errors }
}

beforeAll(() => {
  run('apparmor_parser', '--replace', '--skip-cache', `${import.meta.dirname}/../../../driver/apparmor/${PROFILE}`)
  expect(fs.readFileSync('/sys/kernel/security/apparmor/profiles', 'utf8')).toContain(`${PROFILE} (enforce)`)
})

describe('AppArmor', () => {
  it('the shipped profile allows a FUSE mount below /mnt and its unmount', async () => {
    const directory = makeDirectory('/mnt/modekeep-lab')
    expect(await serveConfined(directory)).toEqual({ isServing: true, errors: '' })
    expect(fs.readFileSync('/proc/self/mountinfo', 'utf8')).toContain(` ${directory} `)
    expect(runConfined('umount', directory)).toBe('')
  })

  it('the shipped profile denies a FUSE mount at another directory', async () => {
    const { isServing, errors } = await serveConfined(makeDirectory('/srv/modekeep-lab'))
    expect(isServing).toBe(false)
    expect(errors).toMatch(/permission denied|cannot mount/i)
  })

  it.each([
    ['a tmpfs', ['mount', '-t', 'tmpfs', 'none', '/mnt/modekeep-lab']],
    ['a bind mount', ['mount', '--bind', '/etc', '/mnt/modekeep-lab']],
    ['another proc', ['mount', '-t', 'proc', 'none', '/mnt/modekeep-lab']],
    ['a write to core_pattern', ['sh', '-c', 'echo x >/proc/sys/kernel/core_pattern']],
    ['a write to sysrq-trigger', ['sh', '-c', 'echo h >/proc/sysrq-trigger']],
    ['a write to a cgroup', ['sh', '-c', 'mkdir /sys/fs/cgroup/modekeep-lab']],
  ])('the shipped profile denies %s', (_, args) => {
    makeDirectory('/mnt/modekeep-lab')
    onTestFinished(() => {
      spawnSync('umount', ['/mnt/modekeep-lab'])
    })
    expect(runConfined(...args)).not.toBe('')
    // It is the profile that denies it.
    const [command = '', ...rest] = args
    expect(spawnSync(command, rest).status).toBe(0)
  })

  it('a walk and its restore succeed on a node with AppArmor', async () => {
    const node = new BinaryNode()
    expect(await walkAndRestore(node, makeSource(node))).toBe(POD_GROUP)
  })
})
