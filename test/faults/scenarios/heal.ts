import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { expect } from 'vitest'
import { linuxHost } from '../../../src/kernel/linux/index.ts'
import { listReadableMountRecords } from '../../../src/state/mount-record.ts'
import { makeTree } from '../../helpers/tree.ts'
import type { Situation } from '../call-scenario.ts'
import type { FaultNode } from '../fault-node.ts'

const args = () => ['heal', '--json']

/** A mount that is gone, one whose source was exchanged, one whose directory is gone. */
async function loseSome(on: FaultNode): Promise<void> {
  await on.succeed(on.mountCall('a'))
  for (const pod of ['b', 'c']) await on.succeed(on.plainMount(pod, { source: on.other }))
  execFileSync('umount', ['--lazy', on.node.podDirectory('a')])
  fs.renameSync(on.other, `${on.other}.old`)
  makeTree(fs, on.other, ['file plain 0600 9'])
  fs.writeFileSync(`${on.other}/plain`, 'other')
  fs.rmSync(`${on.other}.old`, { recursive: true })
  execFileSync('umount', ['--lazy', on.node.podDirectory('c')])
  fs.rmSync(`${on.node.top}/pods/c`, { recursive: true })
}

function isHealthy(on: FaultNode): void {
  on.expectShows('a', on.whole)
  expect(on.node.layers('b')).toHaveLength(1)
  expect(on.shown('b')).toBe('other')
  expect(listReadableMountRecords({ host: linuxHost, config: { stateDir: on.node.state } })).toHaveLength(2)
}

export const HEAL: Situation[] = [
  {
    title: 'heal of three mounts',
    reader: 'person',
    pods: ['a', 'b'],
    args,
    before: loseSome,
    sound(on) {
      on.expectSound(['a'])
      expect([1, 2]).toContain(on.node.layers('b').length)
    },
    promised: isHealthy,
    next: [
      async (on) => {
        await on.succeedByHand(args())
        isHealthy(on)
      },
      // Kubelet's own calls come instead.
      async (on) => {
        await on.succeed(on.mountCall('a'))
        await on.succeed(on.plainMount('b', { source: on.other }))
        // Of the third there is only a record, which no call of kubelet's will ask for.
        await on.succeedByHand(args())
        isHealthy(on)
      },
    ],
  },
]
