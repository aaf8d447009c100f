import { execFileSync, spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import { describe, expect, it } from 'vitest'
import type { DoctorDocument } from '../../src/cli/commands/doctor.ts'
import { BINARY, BinaryNode } from '../helpers/kubelet-call.ts'
import { isRoot } from '../helpers/stage.ts'

const skipReason = !isRoot
  ? 'mounts need root; run "sudo npm test"'
  : !fs.existsSync(BINARY)
    ? 'run "npm run build"'
    : ''

const TMPFS = { 'kubernetes.io/fsType': 'tmpfs' }
const MEBIBYTE = 2 ** 20

/** @property inodes those that can still be made */
function roomIn(directory: string) {
  const { blocks, bsize, ffree } = fs.statfsSync(directory)
  return { size: blocks * bsize, inodes: ffree }
}

describe.skipIf(skipReason !== '')(`a pod's tmpfs${skipReason && ` (skipped: ${skipReason})`}`, () => {
  it('has a size and an inode limit if its author names none', async () => {
    const node = new BinaryNode()
    const directory = node.podDirectory('a')
    expect(await node.call('mount', directory, JSON.stringify(TMPFS))).toEqual({ status: 'Success' })
    expect(roomIn(directory)).toEqual({ size: 64 * MEBIBYTE, inodes: 65_535 })
    const filled = spawnSync('head', ['-c', String(65 * MEBIBYTE), '/dev/zero'], {
      stdio: ['ignore', fs.openSync(`${directory}/filled`, 'w'), 'pipe'],
      encoding: 'utf8',
    })
    expect(filled.stderr).toContain('No space left on device')
  })

  it.each(['size=65m', 'size=50%', 'size=999999999999999g', 'nr_inodes=1m'])('is refused %s', async (option) => {
    const node = new BinaryNode()
    const options = { ...TMPFS, mountOptions: option }
    expect(await node.call('mount', node.podDirectory('a'), JSON.stringify(options))).toEqual({
      status: 'Failure',
      message: expect.stringContaining(`option "mountOptions" has "${option}"`),
    })
    expect(node.layers('a')).toEqual([])
  })

  it('may have the maximum that the node allows, and doctor counts it', async () => {
    const node = new BinaryNode()
    const file = `${node.top}/config.json`
    const config = JSON.parse(fs.readFileSync(file, 'utf8'))
    const allow = (tmpfsMaxSize: string) => fs.writeFileSync(file, JSON.stringify({ ...config, tmpfsMaxSize }))
    allow('128m')
    for (const [pod, mountOptions] of [['a', 'size=128m'] as const, ['b', 'size=1m'] as const]) {
      const options = JSON.stringify({ ...TMPFS, mountOptions })
      expect(await node.call('mount', node.podDirectory(pod), options)).toEqual({ status: 'Success' })
    }
    const doctor = () => {
      const env = { PATH: process.env.PATH, MODEKEEP_CONFIG: file }
      const { stdout } = spawnSync(BINARY, ['doctor', '--json'], { env, encoding: 'utf8' })
      const { findings } = JSON.parse(stdout) as DoctorDocument
      return findings.filter(({ text }) => text.startsWith('volumes in memory'))
    }
    const text = 'volumes in memory (tmpfs): 2, which may take 129 MiB'
    expect(doctor()).toMatchObject([{ level: 'ok', text }])
    allow('64m')
    expect(doctor()).toMatchObject([{ level: 'warning', text: `${text}; 1 may take more than tmpfsMaxSize (64m)` }])
    execFileSync('umount', [node.podDirectory('a'), node.podDirectory('b')])
  })
})
