import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import * as fs from 'node:fs'
import { setImmediate as heard } from 'node:timers/promises'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { requireProgram } from '../helpers/needs.ts'
import { isRoot, kernelStage, type Stage } from '../helpers/stage.ts'
import { publish, READ_FILE, Reader } from './reader.ts'

const MOST_TRIES = 20_000
const GAP = 'the directory without a mount'

describe.skipIf(!isRoot)(`a replaced mount${isRoot ? '' : ' (skipped: mounts need root; run "sudo npm test")'}`, () => {
  let stage: Stage
  let directory: string
  let bare: fs.Stats
  beforeEach(async () => {
    stage = kernelStage('tmpfs')
    onTestFinished(() => stage.close())
    directory = stage.podDirectory('a')
    fs.mkdirSync(directory, { recursive: true })
    bare = fs.statSync(directory)
    publish(source(0), 0)
    publish(source(1), 1)
  })
  const source = (turn: number) => `${stage.top}/volumes/${turn % 2}`

  /** Replaces until the reader has met a fault: this one, or any. */
  async function untilFault(replace: (turn: number) => Promise<void> | void, wanted?: string): Promise<string[]> {
    const reader = new Reader(directory, bare)
    await reader.ready()
    const hasMet = () => (wanted === undefined ? reader.faults.length > 0 : reader.faults.includes(wanted))
    for (let turn = 1; turn < MOST_TRIES && !hasMet(); turn++) {
      await replace(turn)
      await heard()
    }
    await reader.stop()
    return reader.faults
  }

  it('leaves a gap that a reader can see if it is unmounted and mounted', async () => {
    execFileSync('mount', ['--bind', source(0), directory])
    const faults = await untilFault(() => {
      execFileSync('umount', ['--lazy', directory])
      execFileSync('mount', ['--bind', source(0), directory])
    }, GAP)
    execFileSync('umount', ['--lazy', directory])
    expect(faults).toContain(GAP)
  })

  it('is complete after a gap on a kernel that cannot mount beneath', async () => {
    stage.host = { ...stage.host, mounts: { ...stage.host.mounts, attachBeneath: () => false } }
    await stage.mount('a', { source: source(0), mountOptions: 'noatime' })
    let turns = 0
    const faults = await untilFault(async (turn) => {
      await stage.mount('a', { source: source(0), mountOptions: turn % 2 ? 'noexec' : 'noatime' })
      expect(stage.noted.decision).toBe('replace')
      expect(stage.layers('a')).toHaveLength(1)
      expect(stage.layers('a')[0]?.options.includes('noexec')).toBe(turn % 2 === 1)
      turns++
    })
    expect(turns).toBeGreaterThan(0)
    expect(faults).not.toContain('the old content after the new')
    expect(faults.length).toBeGreaterThan(0)
    await stage.mount('a', { source: source(1) })
    expect(fs.readFileSync(`${directory}/${READ_FILE}`, 'utf8')).toBe('1\n')
    await stage.unmount('a')
    expect(stage.layers('a')).toEqual([])
  })

  /** A pod's process in the mount: its view until it ends. */
  async function user(script: string, inANamespace = false): Promise<(line: string) => Promise<string>> {
    const command = inANamespace ? ['unshare', '--mount', '--propagation', 'private', 'sh'] : ['sh']
    const child: ChildProcess = spawn(command[0] ?? '', [...command.slice(1), '-c', script], {
      cwd: directory,
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    users.push(child)
    const ask = async (line: string) => {
      child.stdin?.write(`${line}\n`)
      const [data] = await once(child.stdout as NonNullable<ChildProcess['stdout']>, 'data')
      return String(data)
    }
    await ask('')
    return ask
  }
  const users: ChildProcess[] = []

  async function endUsers(): Promise<void> {
    for (const child of users.splice(0)) {
      child.stdin?.end()
      if (child.exitCode === null) await once(child, 'close')
    }
  }

  it('is replaced while it is in use, and ends with its last user', async () => {
    const image = `${stage.top}/image`
    const volume = `${stage.top}/volumes/disk`
    execFileSync('truncate', ['-s', '16M', image])
    execFileSync(requireProgram('mkfs.ext4'), ['-q', '-F', image])
    fs.mkdirSync(volume)
    execFileSync('mount', ['-o', 'loop', image, volume])
    publish(`${volume}/data`, 7)
    await stage.mount('a', { source: `${volume}/data` })
    onTestFinished(endUsers)
    const open = await user(`exec 3< ${READ_FILE}; while read line; do echo $(cat /proc/self/fd/3); done`)
    const inside = await user(`while read line; do echo $(cat ${READ_FILE}) $(ls); done`)
    const container = await user(`while read line; do echo $(cat ${directory}/${READ_FILE}); done`, true)

    await stage.mount('a', { source: source(1) })
    execFileSync('umount', [volume])
    expect(fs.readFileSync(`${directory}/${READ_FILE}`, 'utf8')).toBe('1\n')
    expect([await open(''), await inside(''), await container('')]).toEqual(['7\n', `7 ${READ_FILE}\n`, '7\n'])
    for (const [index, child] of users.entries()) {
      const rows = fs.readFileSync(`/proc/${child.pid}/mountinfo`, 'utf8').split('\n')
      const there = rows.filter((row) => row.includes(` ${directory} `))
      // A container has its own copy.
      expect(there.filter((row) => row.includes('/data '))).toHaveLength(index === 2 ? 1 : 0)
      expect(there).toHaveLength(1)
    }
    // The kernel lets the loop device go when nothing of its file system is used any more.
    expect(execFileSync('losetup', ['-j', image], { encoding: 'utf8' })).not.toBe('')
    await endUsers()
    await expect.poll(() => execFileSync('losetup', ['-j', image], { encoding: 'utf8' })).toBe('')
    await stage.unmount('a')
  })
})
