import * as fs from 'node:fs'
import { describe, expect, it } from 'vitest'
import { cannotInject, modekeepOn, traceProgram } from '../helpers/inject.ts'
import { BinaryNode } from '../helpers/kubelet-call.ts'
import { addSkipReason } from '../helpers/needs.ts'
import { makeTree } from '../helpers/tree.ts'

const SYNCS = ['fsync', 'fdatasync', 'syncfs']

class Counted extends BinaryNode {
  readonly source = `${this.volumes}/data`

  constructor(files: number) {
    super()
    makeTree(
      fs,
      this.source,
      Array.from({ length: files }, (_, n) => `file d${n % 5}/f${n} 0640`),
    )
  }

  /** How often a mount waits for a disk. */
  async countSyncs(options: Record<string, string>): Promise<number> {
    const asked = { source: this.source, 'kubernetes.io/fsGroup': '2000', ...options }
    const program = modekeepOn(this, ['mount', this.podDirectory('a'), JSON.stringify(asked)])
    const { ended, calls } = await traceProgram(program, SYNCS.join())
    expect(ended.text).toBe('{"status":"Success"}\n')
    // Calls that strace cannot name are traced too.
    return calls.filter(({ name }) => SYNCS.includes(name)).length
  }
}

describe.skipIf(cannotInject !== '')(addSkipReason('the syncs of a mount', cannotInject), () => {
  it.each([10, 1000])(
    'a first walk of %i files waits at most seven times for a disk, a repeated mount never',
    async (files) => {
      const node = new Counted(files)
      const first = await node.countSyncs({ ownership: 'walk' })
      expect(first).toBeLessThanOrEqual(7)
      // Without any, nothing would be durable before the change.
      expect(first).toBeGreaterThan(3)
      expect(await node.countSyncs({ ownership: 'walk' })).toBe(0)
    },
  )

  it('a mount with a mapped group waits at most twice for a disk', async () => {
    expect(await new Counted(10).countSyncs({ ownership: 'idmap' })).toBeLessThanOrEqual(2)
  })
})
