import { expect, it } from 'vitest'
import { wrapInSystemdScope } from '../../src/kernel/linux/helpers.ts'

it('a daemon is started in its own systemd scope, so that it survives a restart of kubelet', () => {
  const order = { program: '/usr/bin/sshfs', args: ['a@b:/c', '/d', '-o', 'x'] }
  expect(wrapInSystemdScope(order, '7 1/x')).toEqual({
    program: 'systemd-run',
    args: ['--scope', '--quiet', '--collect', '--unit=modekeep-fuse-7-1-x', '--', order.program, ...order.args],
  })
})
