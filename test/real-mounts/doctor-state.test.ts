import { execFileSync, spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import { describe, expect, it } from 'vitest'
import { BINARY, BinaryNode } from '../helpers/kubelet-call.ts'
import { addSkipReason, cannotMountWith } from '../helpers/needs.ts'

const skipReason = cannotMountWith('mount')

describe.skipIf(skipReason !== '')(addSkipReason('doctor', skipReason), () => {
  const doctor = (node: BinaryNode, more: object) => {
    const state = `${node.top}/own-state`
    const config = `${node.top}/other.json`
    fs.writeFileSync(config, JSON.stringify({ stateDir: state, logFile: `${node.top}/other.log`, ...more }))
    const { stdout } = spawnSync(BINARY, ['doctor'], { encoding: 'utf8', env: { MODEKEEP_CONFIG: config } })
    return { stdout, state, config }
  }

  it('reports a state directory on a read-only file system', () => {
    const node = new BinaryNode()
    const state = `${node.top}/own-state`
    fs.mkdirSync(state, { mode: 0o700 })
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'ro,mode=0700', 'state', state])
    expect(doctor(node, {}).stdout).toMatch(
      /fault +the file system of \S+own-state is read-only, so nothing can be recorded/,
    )
    execFileSync('umount', [state])
    expect(doctor(node, {}).stdout).not.toContain('is read-only, so nothing')
  })

  it('advises to attach a missing disk, and lists the volume types if a rule has an unknown one', () => {
    const { stdout, config } = doctor(new BinaryNode(), {
      allow: [{ sources: ['/dev/no-such-disk'], fsTypes: ['ext4', 'ext5'] }],
    })
    expect(stdout).not.toContain('mkdir -p /dev')
    expect(stdout).toContain(`attach the disk, or correct its name in "allow" of ${config}`)
    expect(stdout).toContain('rule 1 has fsTypes "ext5", which modekeep cannot mount')
  })
})
