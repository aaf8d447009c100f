import * as fs from 'node:fs'
import { describe, expect, it } from 'vitest'
import { cannotInject, modekeepOn, traceProgram } from '../helpers/inject.ts'
import { BinaryNode } from '../helpers/kubelet-call.ts'
import { addSkipReason } from '../helpers/needs.ts'
import type { TracedCall } from '../helpers/strace-text.ts'
import { makeTree } from '../helpers/tree.ts'
import { MODEKEEP } from './modekeep.ts'

/** Libraries, their lists, and the data that a C library loads by name. */
const LIBRARY_FILES =
  /"(\/usr)?\/lib(32|64|x32)?\/|"\/etc\/(ld\.so|gai\.conf|host\.conf)|"\/usr\/share\/(locale|i18n)|"\/var\/run\/nscd|gconv|nsswitch.*O_CLOEXEC/
// Without O_CLOEXEC it is c-ares, a part of Node, that reads nsswitch.conf. It loads nothing that is named there.

/** Leaves out other programs that modekeep starts, such as stat(1) for a lookup that may wait: they use the node's libraries. */
function selectOwnCalls(calls: readonly TracedCall[]): TracedCall[] {
  const others = new Set<string>()
  return calls.filter(({ thread, name, text, failed }) => {
    if (name === 'execve' && !failed && !text.includes(`"${MODEKEEP}"`) && !text.includes('"/proc/self/exe"'))
      others.add(thread)
    return !others.has(thread)
  })
}

describe.skipIf(cannotInject !== '')(addSkipReason('the files that modekeep opens', cannotInject), () => {
  it('are no libraries and no lists of libraries of the node: version, init, mount, unmount, doctor', async () => {
    const node = new BinaryNode()
    makeTree(fs, `${node.volumes}/data`, ['file f 0640', 'dir d 0755'])
    const options = { source: `${node.volumes}/data`, 'kubernetes.io/fsGroup': '2000', ownership: 'walk' }
    const directory = node.podDirectory('a')
    const verbs = [
      ['version'],
      ['init'],
      ['mount', directory, JSON.stringify(options)],
      ['unmount', directory],
      ['doctor'],
    ]
    for (const args of verbs) {
      const program = modekeepOn(node, args)
      const locale = { LANG: 'de_DE.UTF-8', LC_ALL: 'de_DE.UTF-8', LC_CTYPE: 'tr_TR.ISO-8859-9' }
      const { ended, calls } = await traceProgram({ ...program, env: { ...program.env, ...locale } }, '%file')
      expect(ended.text).not.toContain('Failure')
      expect(calls.length).toBeGreaterThan(5)
      expect(selectOwnCalls(calls).filter(({ text }) => LIBRARY_FILES.test(text))).toEqual([])
    }
  }, 120_000)
})
