import * as fs from 'node:fs'
import { describe, expect, it } from 'vitest'
import { cannotInject } from '../helpers/inject.ts'
import { BinaryNode } from '../helpers/kubelet-call.ts'
import { addSkipReason } from '../helpers/needs.ts'

const STRACE = ['strace', '-f', '-qq', '-o', '/dev/null']
// strace 6.1 prints a message about the delay.
const WITHOUT_ERRORS = ['/bin/sh', '-c', 'exec "$@" 2>/dev/null', 'sh']
// The child writes nothing for longer than the loader's polling interval of 250 ms, so that the loader calls wait4(2).
const SLOW_CHILD = 'inject=memfd_create:delay_enter=600000:when=1'

describe.skipIf(cannotInject !== '')(addSkipReason('a mount call whose child is slow', cannotInject), () => {
  /** @param fault of the loader's first wait4(2) */
  function nodeWith(fault: string) {
    const node = new BinaryNode()
    const source = `${node.volumes}/data`
    fs.mkdirSync(source)
    const expressions = ['trace=wait4,memfd_create', SLOW_CHILD, `inject=wait4:${fault}:when=1`]
    node.wrapper = [...WITHOUT_ERRORS, ...STRACE, ...expressions.flatMap((expression) => ['-e', expression])]
    return { node, mount: () => node.call('mount', node.podDirectory('a'), JSON.stringify({ source })) }
  }

  it.each([
    ['a signal interrupts wait4(2)', 'error=EINTR'],
    ['the child replies and ends before wait4(2) begins', 'delay_enter=3000000'],
  ])('passes on the reply of the child if %s', async (_, fault) => {
    const { node, mount } = nodeWith(fault)
    expect(await mount()).toEqual({ status: 'Success' })
    expect(node.layers('a')).toHaveLength(1)
  })

  it('replies that the child has ended without an answer if wait4(2) finds no child, and the next call succeeds', async () => {
    const { node, mount } = nodeWith('error=ECHILD')
    const message = expect.stringContaining('ended without an answer (errno 10)')
    expect(await mount()).toEqual({ status: 'Failure', message })
    node.wrapper = []
    expect(await mount()).toEqual({ status: 'Success' })
    expect(node.layers('a')).toHaveLength(1)
  })
})
