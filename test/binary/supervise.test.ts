import * as fs from 'node:fs'
import { expect, it } from 'vitest'
import { cannotInject } from '../helpers/inject.ts'
import { BinaryNode } from '../helpers/kubelet-call.ts'
import { addSkipReason } from '../helpers/needs.ts'

const title = 'a mount call passes on the reply of its slow child even if a signal interrupts wait4(2)'

it.skipIf(cannotInject !== '')(addSkipReason(title, cannotInject), async () => {
  const node = new BinaryNode()
  const source = `${node.volumes}/data`
  fs.mkdirSync(source)
  // The child writes nothing for longer than the loader's polling interval of 250 ms, so that the loader calls wait4(2).
  const injected =
    'trace=wait4,memfd_create inject=memfd_create:delay_enter=600000:when=1 inject=wait4:error=EINTR:when=1'
  const expressions = injected.split(' ').flatMap((expression) => ['-e', expression])
  // strace 6.1 prints a message about the delay.
  const withoutErrors = ['/bin/sh', '-c', 'exec "$@" 2>/dev/null', 'sh']
  node.wrapper = [...withoutErrors, 'strace', '-f', '-qq', '-o', '/dev/null', ...expressions]
  const reply = await node.call('mount', node.podDirectory('a'), JSON.stringify({ source }))
  expect(reply).toEqual({ status: 'Success' })
  expect(node.layers('a')).toHaveLength(1)
})
