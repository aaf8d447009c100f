import { spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import { describe, expect, it } from 'vitest'
import { BINARY, BinaryNode } from '../helpers/kubelet-call.ts'
import { addSkipReason, cannotMountWith } from '../helpers/needs.ts'

const skipReason = cannotMountWith()

describe.skipIf(skipReason !== '')(addSkipReason('a kernel file system', skipReason), () => {
  const called = (node: BinaryNode, ...args: string[]) =>
    spawnSync(BINARY, args, { encoding: 'utf8', env: { MODEKEEP_CONFIG: `${node.top}/config.json` } })
  const all = ['/proc', '/sys', '/sys/kernel', '/dev/pts'].filter((path) => fs.existsSync(path))

  it.each(all)('%s is refused by apply and plan with any options', (directory) => {
    const node = new BinaryNode()
    for (const args of [['apply', '--yes'], ['apply', '--yes', '--force'], ['plan']]) {
      const [verb = '', ...more] = args
      const { status, stderr } = called(node, verb, directory, '--fsgroup', '2000', ...more)
      expect({ args, status }).toEqual({ args, status: 1 })
      expect(stderr).toMatch(/is on \w+, a file system of the kernel that holds no data: name a directory of a volume/)
    }
    expect(fs.statSync(directory).gid).not.toBe(2000)
  })

  it('/etc is walked only with --yes, and plan reports that apply would be refused', () => {
    const node = new BinaryNode()
    const { status, stderr } = called(node, 'apply', '/etc/ssl', '--fsgroup', '2000')
    expect(status).toBe(1)
    expect(stderr).toContain('"/etc/ssl" is one of the system: look at it with "modekeep plan" first')
    expect(called(node, 'plan', '/etc/ssl', '--fsgroup', '2000').stdout).toContain('apply would be refused now')
    expect(called(node, 'plan', '/etc/ssl', '--fsgroup', '2000', '--yes').stdout).not.toContain('would be refused')
  })
})
