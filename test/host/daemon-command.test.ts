import { describe, expect, it } from 'vitest'
import { daemonCommand } from '../../src/host/daemon-command.ts'

describe('the command that starts a daemon', () => {
  const order = { program: 'sshfs', args: ['a@b:/c', '/d', '-o', 'x'] }

  it('is the program itself where no systemd runs', () => {
    expect(daemonCommand(order, false, '7-1')).toEqual(order)
  })

  it('gives it a scope of its own where systemd runs, in which kubelet can be restarted', () => {
    expect(daemonCommand(order, true, '7 1/x')).toEqual({
      program: 'systemd-run',
      args: ['--scope', '--quiet', '--collect', '--unit=modekeep-fuse-7-1-x', '--', 'sshfs', ...order.args],
    })
  })
})
